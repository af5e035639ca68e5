import { isJsonArray, isJsonObject, type JsonValue } from "../../core/json.ts";
import { codePointCount, headIndex } from "../../core/text.ts";
import { binaryText } from "./binary-text.ts";
import { parseDelimited } from "./delimited.ts";
import { type Detected, detect } from "./detect.ts";
import { cutBefore, GAP } from "./excerpt.ts";
import { readHtml } from "./html.ts";
import { jsonText } from "./json-text.ts";
import { logText } from "./log-text.ts";
import { proseText } from "./prose-text.ts";
import { parseQuestion, type Question } from "./question.ts";
import { tableOfObjects } from "./table.ts";
import { tableText } from "./table-text.ts";
import type { Work } from "./work.ts";

/** How long a summary may be, and what it should say something about. */
export interface SummaryOptions {
  /** Most code points, the footer included. */
  readonly limit: number;
  /** In plain words, or names and values; empty: nothing is asked. */
  readonly question: string;
  /** Names the whole; left out of a footer that has no room for it. */
  readonly handle?: string | undefined;
  /** How large the whole is, where the text is only its beginning. */
  readonly of?: string | undefined;
}

/** A text that stands for a longer one. */
export interface Summary {
  readonly text: string;
  /** Code points of the whole text. */
  readonly originalLength: number;
}

/** Text of some kind within its budget. */
interface Body {
  readonly text: string;
  /** What stands in it of what. */
  readonly shown: string;
}

/**
 * A summary of a text, or `undefined` where the text is within the limit. Every number in it stands in the text, or is a
 * count, a least, a greatest or a mean and named so. The same text gives the same summary.
 */
export function* summarizeText(text: string, options: SummaryOptions): Work<Summary | undefined> {
  if (isWithin(text, options.limit)) return undefined;
  const detected = detect(text);
  yield;
  return yield* framed(NAMES[detected.type], text, options, (budget, question) =>
    bodyOf(detected, text, budget, question),
  );
}

/** A code point is one UTF-16 unit or two. */
function isWithin(text: string, limit: number): boolean {
  return text.length <= limit || (text.length <= 2 * limit && codePointCount(text) <= limit);
}

/** A summary of a JSON value whose text, which is longer than the limit, is `json`. */
export function* summarizeJson(value: JsonValue, json: string, options: SummaryOptions): Work<Summary> {
  return yield* framed(NAMES.json, json, options, (budget, question) => jsonBody(value, json, budget, question));
}

const NAMES: Readonly<Record<Detected["type"], string>> = {
  json: "JSON",
  ndjson: "JSON lines",
  delimited: "a table",
  html: "HTML",
  markdown: "Markdown",
  log: "a log",
  text: "text",
  binary: "binary data",
};

/** Characters of how much stands in a summary, as a rule. */
const USUAL_SHOWN = 24;

/** Longest part of a limit that a footer may take. */
const FOOTER_SHARE = 0.34;

function* framed(
  name: string,
  text: string,
  { limit, question, handle, of }: SummaryOptions,
  make: (budget: number, question: Question) => Work<Body>,
): Work<Summary> {
  const originalLength = codePointCount(text);
  const named = handle === undefined ? "" : `; whole: ${handle}`;
  const size = `${of === undefined ? "" : "the first "}${originalLength} characters of ${of === undefined ? "" : `${of} of `}${name}`;
  const fits = limit * FOOTER_SHARE >= `[summary of ${size}${named}]`.length;
  const whole = fits ? named : "";
  const footer = (shown: string): string => `[summary of ${size}${shown}${whole}]`;
  // How long `shown` will be is not known before: room for a usual one is kept, and of a longer one the beginning stays.
  const long = footer("").length + USUAL_SHOWN;
  const room = limit * FOOTER_SHARE >= long ? long : limit * FOOTER_SHARE >= footer("").length ? footer("").length : 1;
  const budget = limit - room - 1;
  if (budget < 1) return { text: limit > 0 ? GAP : "", originalLength };
  const body = yield* make(budget, parseQuestion(question));
  const kept = within(body.text, budget);
  const [first = ""] = body.shown.split(", ");
  const ends = [footer(`: ${body.shown}`), footer(`: ${first}`), footer(""), GAP];
  return { text: `${kept}\n${ends.find((end) => kept.length + 1 + end.length <= limit) ?? GAP}`, originalLength };
}

function within(text: string, budget: number): string {
  if (text.length <= budget) return text;
  return text.slice(0, cutBefore(text, headIndex(text, budget)));
}

function* bodyOf(detected: Detected, text: string, budget: number, question: Question): Work<Body> {
  switch (detected.type) {
    case "json":
      return yield* jsonBody(detected.value, text, budget, question);
    case "ndjson":
      return yield* rowsBody(yield* tableOfObjects("lines", detected.rows), budget, question);
    case "delimited":
      return yield* rowsBody(parseDelimited(text, detected.delimiter).table, budget, question);
    case "html":
      return yield* htmlBody(text, budget, question);
    case "log":
      return yield* logText(text, budget, question);
    case "markdown":
    case "text":
      return yield* proseText(text, budget, question);
    case "binary":
      return binaryText(text, budget, question);
  }
}

function* jsonBody(value: JsonValue, json: string, budget: number, question: Question): Work<Body> {
  if (isJsonArray(value) || isJsonObject(value)) return yield* jsonText(value, budget, question);
  return yield* proseText(typeof value === "string" ? value : json, budget, question);
}

function* rowsBody(table: Parameters<typeof tableText>[0], budget: number, question: Question): Work<Body> {
  const made = yield* tableText(table, budget, question);
  return { text: made.text, shown: `${made.rowsShown} of ${table.rows} rows` };
}

/** The text of a page, and its largest tables, each by its share. */
function* htmlBody(html: string, budget: number, question: Question): Work<Body> {
  const { markdown, tables } = yield* readHtml(html);
  yield;
  const sizes = tables.map((table) => table.rows * table.columns.length * 8);
  const whole = sizes.reduce((sum, size) => sum + size, markdown.length);
  const share = Math.max(0.2, markdown.length / Math.max(1, whole));
  const prose = yield* proseText(markdown, Math.floor(budget * (tables.length === 0 ? 1 : share)), question);
  const texts = [prose.text];
  let left = budget - prose.text.length - 1;
  const shown = [prose.shown];
  for (const [i, table] of tables.entries()) {
    const own = Math.floor(left / (tables.length - i));
    if (own < 120) break;
    const made = yield* tableText(table, own - 1, question);
    left -= made.text.length + 1;
    texts.push(made.text);
    shown.push(`${made.rowsShown} of ${table.rows} rows of ${table.label}`);
  }
  return { text: texts.filter((text) => text !== "").join("\n"), shown: shown.join(", ") };
}
