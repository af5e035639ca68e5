import { excerpt, fittingWidth, flatLine, GAP } from "./excerpt.ts";
import { type LogEntry, type LogFile, type LogPattern, readLog } from "./log-lines.ts";
import { NO_QUESTION, type Question } from "./question.ts";
import { TextIndex, topOf, weighTexts } from "./text-index.ts";
import type { Work } from "./work.ts";

/** A log within its budget. */
export interface LogText {
  readonly text: string;
  readonly shown: string;
}

/** Most lines that a question brings. */
const MAX_ASKED = 12;

/** A word of more of the lines tells none of them from the others. */
const COMMON = 0.5;

/** Lines of a trace that are shown: its first ones, where it is caused by others, and its last. */
const TRACE_HEAD = 3;

/** Widths of a line, by how much it says: the narrower one where not all have room otherwise. */
const WIDE = 240;
const MIDDLE = 140;
const NARROW = 110;
const LEAST_BAD = 150;
const LEAST_ONCE = 80;

/** About the length of the number of a line. */
const NUMBER = 6;

/** Patterns that come less often have no place before the lines that happened once. */
const LEAST_OFTEN = 3;

/** Most patterns that come before the lines that happened once. */
const MAX_OFTEN = 10;

/** Most beginnings of lines that happened once, of which each has its share. */
const MAX_GROUPS = 2_000;

/** A line says at its end what it is about. */
const HEAD_SHARE = 0.4;
const WORDS_SHARE = 0.15;

function isBad({ level }: LogPattern): boolean {
  return level > 0;
}

/** What is written, and how much still may be. */
interface Page {
  readonly lines: string[];
  readonly shown: Set<number>;
  /** Patterns that stand on it with their counts. */
  readonly counted: Set<LogPattern>;
  left: number;
}

/**
 * A log as text: how many lines, the first and the last, what the question asks for, errors and warnings, what happened
 * once, what happened often with how often. Lines stand without their times but for the first, the last, and errors.
 */
export function* logText(text: string, budget: number, question: Question): Work<LogText> {
  const log = yield* readLog(text);
  const page: Page = { lines: [], shown: new Set(), counted: new Set(), left: budget };
  const { entries, patterns } = log;
  put(
    page,
    `${log.lines} lines, ${patterns.length} patterns${log.prefix === "" ? "" : `; all begin: ${excerpt(flatLine(log.prefix), 80)}`}`,
  );
  yield* putAsked(page, log, question);
  const [first] = entries;
  const last = entries.at(-1);
  if (first !== undefined) putEntry(page, first, whole(first, MIDDLE));
  if (last !== undefined) putEntry(page, last, whole(last, MIDDLE));
  yield;
  const bad = patterns.filter(isBad).toSorted((a, b) => b.level - a.level || a.count - b.count);
  const often = patterns
    .filter((pattern) => !isBad(pattern) && pattern.count > 1)
    .toSorted((a, b) => b.count - a.count);
  const rare = patterns.filter((pattern) => !isBad(pattern) && pattern.count === 1);
  const once = diverse(rare, page.left);
  yield;
  section(page, "errors and warnings", bad, { least: page.left * 0.5, line: badLines(bad, page.left * 0.5) });
  section(page, "often", often.filter(({ count }) => count >= LEAST_OFTEN).slice(0, MAX_OFTEN), {
    least: page.left * 0.72,
    line: lines(NARROW),
  });
  section(page, "once", once, { least: 0, line: onceLines(once, page.left) });
  section(page, "often", often, { least: 0, line: lines(NARROW) });
  return { text: page.lines.join("\n"), shown: `${page.shown.size} of ${log.lines} lines` };
}

function put(page: Page, line: string): boolean {
  if (line.length + 1 > page.left) return false;
  page.lines.push(line);
  page.left -= line.length + 1;
  return true;
}

function putEntry(page: Page, entry: LogEntry, text: string): boolean {
  if (page.shown.has(entry.line)) return true;
  if (!put(page, text)) return false;
  page.shown.add(entry.line);
  return true;
}

/** Lines the question asks for, in their order, before all others. */
function* putAsked(page: Page, { entries }: LogFile, question: Question): Work<undefined> {
  if (question.terms.length === 0) return undefined;
  const index = new TextIndex(entries.map(({ text }) => text));
  yield;
  const { scores } = yield* weighTexts(index, question, COMMON);
  const asked = topOf(scores, MAX_ASKED).flatMap((i) => entries[i] ?? []);
  if (asked.length === 0) return undefined;
  put(page, "asked for:");
  const least = page.left * 0.5;
  for (const entry of asked) {
    if (page.left < least) break;
    putEntry(page, entry, whole(entry, WIDE, question) + traceText(entry));
  }
  return undefined;
}

interface SectionRules {
  /** Room to leave to others. */
  readonly least: number;
  readonly line: (pattern: LogPattern) => string;
}

function section(page: Page, title: string, patterns: readonly LogPattern[], { least, line }: SectionRules): void {
  const fresh = patterns.filter((p) => !page.counted.has(p) && (p.count > 1 || !page.shown.has(p.first.line)));
  const [first] = fresh;
  if (first === undefined || page.left - least < line(first).length + title.length + 3) return;
  put(page, `${title}:`);
  let misses = 0;
  for (const pattern of fresh) {
    const text = line(pattern);
    if (page.left - text.length - 1 < least || !put(page, text)) {
      if (++misses > 8) break;
      continue;
    }
    page.shown.add(pattern.first.line);
    page.counted.add(pattern);
  }
}

type Line = SectionRules["line"];

/** Errors as wide as they fit, with their traces: where not all have room, the frames go first, then the times. */
function badLines(bad: readonly LogPattern[], room: number): Line {
  const choices = [
    { width: WIDE, frames: TRACE_HEAD, isTimed: true },
    { width: WIDE, frames: 1, isTimed: true },
    { width: LEAST_BAD, frames: 1, isTimed: true },
    { width: LEAST_BAD, frames: 0, isTimed: false },
    { width: NARROW, frames: 0, isTimed: false },
  ] as const;
  const line =
    ({ width, frames, isTimed }: (typeof choices)[number]): Line =>
    (pattern) =>
      times(pattern) + timed(pattern.first, width, isTimed) + traceText(pattern.first, frames);
  const fits = (make: Line): boolean => {
    let left = room;
    return bad.every((pattern) => (left -= make(pattern).length + 1) >= 0);
  };
  return choices.map(line).find(fits) ?? line(choices[4]);
}

function lines(width: number): Line {
  return (pattern) => `${times(pattern)}${pattern.first.line}: ${wordsOf(flatLine(pattern.first.body), width)}`;
}

/** About `width` characters of a line, in whole words: its first ones and, more of them, its last. */
function wordsOf(line: string, width: number): string {
  if (line.length <= width) return line;
  const head = line.lastIndexOf(" ", width * WORDS_SHARE);
  const tail = line.indexOf(" ", line.length - width + Math.max(head, 0));
  if (tail < 0 || tail <= head) return excerpt(line, width, NO_QUESTION, HEAD_SHARE);
  return line.slice(0, Math.max(head, 0)) + GAP + line.slice(tail + 1);
}

/** Many short lines say more than few long ones, and than where they stand. */
function onceLines(once: readonly LogPattern[], room: number): Line {
  const lengths = once.map(({ first }) => first.body.length);
  const width = fittingWidth(lengths, room, { narrow: LEAST_ONCE, wide: NARROW });
  const needed = lengths.reduce((sum, length) => sum + Math.min(length, width) + NUMBER, 0);
  return needed <= room ? lines(width) : ({ first }) => wordsOf(flatLine(first.body), width);
}

function times({ count }: LogPattern): string {
  return count > 1 ? `×${count} ` : "";
}

function timed({ line, time, body }: LogEntry, width: number, isTimed: boolean): string {
  return `${line}: ${excerpt(flatLine(time === "" || !isTimed ? body : `${time} ${body}`), width, NO_QUESTION, HEAD_SHARE)}`;
}

function whole(entry: LogEntry, width: number, question?: Question): string {
  return `${entry.line}: ${excerpt(flatLine(entry.text), width, question, HEAD_SHARE)}`;
}

/** A stack trace: its first frames, its causes, its last line. */
function traceText({ trace }: LogEntry, frames = TRACE_HEAD): string {
  if (trace.length === 0) return "";
  const kept = trace.filter((line, i) => i < frames || i === trace.length - 1 || /^\s*Caused by: /.test(line));
  const more = trace.length > kept.length ? `\n  … ${trace.length} lines of trace` : "";
  return kept.map((line) => `\n  ${excerpt(flatLine(line), MIDDLE)}`).join("") + more;
}

/**
 * Patterns of all kinds, about as many as there is room for: those that begin with the same word share the room with the
 * others that do, the rarest beginnings foremost, the shortest lines of each.
 */
function diverse(patterns: readonly LogPattern[], room: number): LogPattern[] {
  const groups = new Map<string, LogPattern[]>();
  for (const pattern of patterns) {
    const key = /^\W*\w*/.exec(pattern.first.body.slice(0, NARROW))?.[0] ?? "";
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [pattern]);
    else group.push(pattern);
  }
  let open = [...groups.values()]
    .toSorted((a, b) => a.length - b.length)
    .slice(0, MAX_GROUPS)
    .map((group) => ({ used: 0, next: 0, patterns: group.toSorted((a, b) => costOf(a) - costOf(b)) }));
  const out: LogPattern[] = [];
  for (let left = room * 1.5; open.length > 0 && left > 0; ) {
    const least = open.reduce((best, group) => (group.used < best.used ? group : best));
    const pattern = least.patterns[least.next++];
    const cost = pattern === undefined ? 0 : costOf(pattern);
    if (pattern !== undefined) out.push(pattern);
    least.used += cost;
    left -= cost;
    if (least.next >= least.patterns.length) open = open.filter((group) => group !== least);
  }
  return out;
}

function costOf({ first }: LogPattern): number {
  return Math.min(NARROW, first.body.length) + 6;
}
