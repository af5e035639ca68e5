import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../../core/json.ts";
import { delimiterOf } from "./delimited.ts";
import { hasTime, isTraceLine } from "./log-lines.ts";

/** What a text is. */
export type Detected =
  | { readonly type: "json"; readonly value: JsonValue }
  | { readonly type: "ndjson"; readonly rows: readonly JsonObject[]; readonly others: number }
  | { readonly type: "delimited"; readonly delimiter: string }
  | { readonly type: "html" | "markdown" | "log" | "text" | "binary" };

/** Characters at the beginning of a text that tell what it is. */
const SAMPLE = 20_000;

/** A heading of Markdown. */
const HEADING = /^#{1,6} \S/;

/** Longer text is not parsed as JSON, which cannot be done in pieces. */
const MAX_JSON = 8_000_000;

/** Tells what a text is by how it looks. */
export function detect(text: string): Detected {
  const sample = text.slice(0, SAMPLE);
  if (isBinary(sample)) return { type: "binary" };
  const json = /^\s*[[{]/.test(sample) && text.length <= MAX_JSON ? (asJson(text) ?? asLines(text)) : undefined;
  if (json !== undefined) return json;
  if (isHtml(sample)) return { type: "html" };
  const delimiter = delimiterOf(text);
  if (delimiter !== undefined) return { type: "delimited", delimiter };
  const lines = sample.split(/\r?\n/).filter((line) => line.trim() !== "");
  if (isLog(lines) || isRecords(lines)) return { type: "log" };
  return { type: isMarkdown(lines) ? "markdown" : "text" };
}

/** More than a few characters that no text has. */
function isBinary(sample: string): boolean {
  let odd = 0;
  for (let i = 0; i < sample.length; i++) if (isOdd(sample.charCodeAt(i))) odd++;
  return odd > sample.length * 0.05;
}

/** Control characters but for tabs, line ends and escapes, and what stands for bytes that are no text. */
function isOdd(unit: number): boolean {
  return unit < 9 || (unit > 13 && unit < 27) || (unit > 27 && unit < 32) || unit === 0xfffd;
}

/** Begins with a tag; Markdown does too at times, and goes on with headings of its own. */
function isHtml(sample: string): boolean {
  if (!/^\s*<(?:!|[?]xml|[a-z][a-z0-9]*[\s>])/i.test(sample) || !/<\/[a-z]/i.test(sample)) return false;
  return (
    /^\s*<(?:!doctype|html|[?]xml)\b/i.test(sample) ||
    sample.split("\n").filter((line) => HEADING.test(line)).length < 2
  );
}

function asJson(text: string): Detected | undefined {
  try {
    const value = parseJson(text);
    return typeof value === "object" && value !== null ? { type: "json", value } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A JSON object a line; a few lines may be something else. */
function asLines(text: string): Detected | undefined {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const rows: JsonObject[] = [];
  for (const [i, line] of lines.entries()) {
    if (i === 20 && rows.length < 15) return undefined;
    const row = line.startsWith("{") ? asJson(line) : undefined;
    if (row?.type === "json" && isJsonObject(row.value)) rows.push(row.value);
  }
  const others = lines.length - rows.length;
  return rows.length >= 2 && others <= lines.length * 0.1 ? { type: "ndjson", rows, others } : undefined;
}

/** Most lines begin with a time, or are of a stack trace, or name a level. */
function isLog(lines: readonly string[]): boolean {
  if (lines.length < 2) return false;
  return lines.filter(isEntry).length >= lines.length * 0.5;
}

function isEntry(line: string): boolean {
  return (
    hasTime(line) || isTrace(line) || /^\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b/.test(line)
  );
}

/** Indented text is no trace by itself. */
function isTrace(line: string): boolean {
  return isTraceLine(line) && /\bat |File "|Caused by|Traceback|more$|:\d+/.test(line);
}

/** Fewest lines that may be records without a time. */
const LEAST_RECORDS = 20;

/** Lines of records begin with few different words. */
const FEW_BEGINNINGS = 4;

/** Most lines that are compared. */
const MAX_RECORDS = 300;

/** How far back a line is compared, and how many lines of records are like one of those before. */
const LAST_LINES = 8;
const LEAST_ALIKE = 0.5;

/** What a compiler or a linter says of a place in a file. */
const DIAGNOSTIC = /^\S+[:(]\d+[:,)\d]*:? (?:fatal |internal )?(?:error|warning|note|info)\b/i;

/** Share of lines that are diagnostics; the others quote the source. */
const LEAST_DIAGNOSTICS = 0.15;

/** Lines that machines write one after the other, such as the steps of a build or the results of tests. */
function isRecords(lines: readonly string[]): boolean {
  if (lines.length < LEAST_RECORDS || lines.filter((line) => HEADING.test(line)).length >= 2) return false;
  if (lines.filter((line) => DIAGNOSTIC.test(line)).length >= lines.length * LEAST_DIAGNOSTICS) return true;
  const few = lines.slice(0, MAX_RECORDS);
  return beginAlike(few) || few.filter(createIsAlike()).length >= few.length * LEAST_ALIKE;
}

/** Few words begin half of the lines. */
function beginAlike(lines: readonly string[]): boolean {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const word = /^[\p{L}\p{N}[][^\s(]{2,60}/u.exec(line)?.[0].replace(/\d+/g, "0");
    if (word !== undefined) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const often = [...counts.values()].toSorted((a, b) => b - a).slice(0, FEW_BEGINNINGS);
  return often.reduce((sum, count) => sum + count, 0) >= lines.length * 0.5;
}

/** Whether a line has a third of its words where one of the last lines has them, whatever their numbers; prose never does. */
function createIsAlike(): (line: string) => boolean {
  const last: (readonly string[])[] = [];
  return (line) => {
    const words = line.slice(0, 200).replace(/\d+/g, "0").split(/\s+/);
    const isAlike = last.some((other) => {
      const same = words.filter((word, i) => word === other[i]).length;
      return same * 3 >= Math.max(words.length, other.length);
    });
    last.push(words);
    if (last.length > LAST_LINES) last.shift();
    return isAlike;
  };
}

function isMarkdown(lines: readonly string[]): boolean {
  return lines.some((line) => /^#{1,6} \S|^```|^\|[-:| ]+\|$|^\s*[-*] \S|\]\([^)\s]{1,300}\)/.test(line));
}
