import type { Work } from "./work.ts";

/** A line of a log, with the lines of a stack trace that belong to it. */
export interface LogEntry {
  /** Number of its first line, from 1. */
  readonly line: number;
  readonly text: string;
  /** Its text without the time and what all lines begin with. */
  readonly body: string;
  /** Its time as it is written, without the day where that is the one of the first entry; empty: none. */
  readonly time: string;
  /** Lines of a trace below it. */
  readonly trace: readonly string[];
}

/** Entries that differ in numbers alone. */
export interface LogPattern {
  readonly first: LogEntry;
  readonly last: LogEntry;
  readonly count: number;
  /** 2: error, 1: warning, 0: neither. */
  readonly level: 0 | 1 | 2;
}

/** A log, read. */
export interface LogFile {
  readonly lines: number;
  readonly entries: readonly LogEntry[];
  readonly patterns: readonly LogPattern[];
  /** What every line begins with, apart from its time. */
  readonly prefix: string;
}

/** A time as logs write it. */
const TIME =
  /\[?\b(?:\d{4}[-/.]\d\d[-/.]\d\d(?:[T ,]+\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?)?|\d{1,2}\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?:? ?/;

/** The time of a kernel's line: seconds since the start. */
const UPTIME = /^\[ *\d+\.\d+\] /;

/** Words of trouble, where they are not of the name of a file. */
const ERROR =
  /(?<![\w/])(?:error|fatal|fail(?:ed|ure|s)?|exception|severe|critical|panic|emerg|alert|crit|err|traceback)s?\b(?!\.\w|\/)/i;

/** The name of a kind of exception. */
const EXCEPTION = /[a-z](?:Error|Exception)\b/;
const WARNING = /\bwarn(?:ing)?\b/i;

/** How far into a line its time may stand. */
const HEAD = 80;

/** Most characters of a line that count for its pattern. */
const MAX_PATTERN = 300;

/** Whether a line begins with a time, apart from a word or two. */
export function hasTime(line: string): boolean {
  const at = line.slice(0, HEAD).search(TIME);
  return UPTIME.test(line) || (at >= 0 && at <= 40);
}

/** Whether a line is of a stack trace, below its first one. */
export function isTraceLine(line: string): boolean {
  return /^\s+at .+|^\s+File ".*", line \d+|^\s*Caused by: |^\s+\.\.\. \d+ more|^\s{4,}\S|^goroutine \d+ |^\t\S+:\d+|^Traceback \(/.test(
    line,
  );
}

/** Reads a log: entries with their traces, and the patterns they make up. */
export function* readLog(text: string): Work<LogFile> {
  const lines = text.split("\n");
  yield;
  const groups: Group[] = [];
  let count = 0;
  for (const [i, line] of lines.entries()) {
    if (i % 2_000 === 0) yield;
    if (line.trim() === "") continue;
    count++;
    const last = groups.at(-1);
    if (last !== undefined && isTraceLine(line) && !hasTime(line)) last.trace.push(line);
    else groups.push({ line: i + 1, text: line.endsWith("\r") ? line.slice(0, -1) : line, trace: [] });
  }
  const entries = yield* entriesOf(groups);
  return { lines: count, ...entries, patterns: yield* patternsOf(entries.entries) };
}

interface Group {
  readonly line: number;
  readonly text: string;
  readonly trace: string[];
}

/** Entries without what all of them begin with. */
function* entriesOf(groups: readonly Group[]): Work<Pick<LogFile, "entries" | "prefix">> {
  const bodies: string[] = [];
  const times: string[] = [];
  const find = createTimeFinder();
  for (const { text: line } of groups) {
    const { start, end } = find(line);
    times.push(line.slice(start, end));
    if (bodies.push(line.slice(0, start) + line.slice(end)) % 2_000 === 0) yield;
  }
  const prefix = commonPrefix(bodies);
  const day = dayOf(times[0] ?? "");
  const entries = groups.map((group, i): LogEntry => {
    const time = times[i] ?? "";
    const short = day !== "" && time.startsWith(day) ? time.slice(day.length) : time;
    return { ...group, body: (bodies[i] ?? "").slice(prefix.length), time: short.trim() };
  });
  yield;
  return { entries, prefix: prefix.trim() };
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Finds the time in lines, empty where there is none; where the last one had it, the next has it as a rule. */
function createTimeFinder(): (line: string) => Span {
  const here = new RegExp(TIME.source, "y");
  let at = -1;
  return (line) => {
    here.lastIndex = Math.max(0, at);
    let time = at < 0 ? null : here.exec(line);
    if (time === null) {
      const head = line.slice(0, HEAD);
      time = UPTIME.exec(head) ?? TIME.exec(head);
    }
    if (time === null) return { start: 0, end: 0 };
    at = time.index;
    return { start: at, end: at + time[0].length };
  };
}

/** What stands in a time before its hours; empty: nothing that can be left out. */
function dayOf(time: string): string {
  return /^[^[\]]*?[ T,](?=\d\d:\d\d)/.exec(time)?.[0] ?? "";
}

/** The words all bodies begin with, a space at their end; empty where there are none. */
function commonPrefix(bodies: readonly string[]): string {
  let prefix = bodies[0] ?? "";
  if (bodies.length < 2) return "";
  for (const body of bodies) {
    while (!body.startsWith(prefix)) prefix = prefix.slice(0, -1);
    if (prefix === "") return "";
  }
  const end = prefix.lastIndexOf(" ") + 1;
  // A number at the end may go on in the line.
  return prefix.slice(0, end);
}

function levelOf({ text, trace }: LogEntry): LogPattern["level"] {
  const line = text.slice(0, MAX_PATTERN);
  if (trace.length > 1 || ERROR.test(line) || EXCEPTION.test(line)) return 2;
  return WARNING.test(line) ? 1 : 0;
}

function* patternsOf(entries: readonly LogEntry[]): Work<LogPattern[]> {
  const patterns = new Map<string, { first: LogEntry; last: LogEntry; count: number }>();
  for (const [i, entry] of entries.entries()) {
    if (i % 1_000 === 0) yield;
    const key = patternOf(entry.body);
    const known = patterns.get(key);
    if (known === undefined) patterns.set(key, { first: entry, last: entry, count: 1 });
    else {
      known.last = entry;
      known.count++;
    }
  }
  yield;
  return [...patterns.values()].map((pattern) => ({ ...pattern, level: levelOf(pattern.first) }));
}

/** Where a number may go on in letters. */
const HEXADECIMAL = /#[a-f]|[a-f]#|0x/i;

/** A line with its numbers and long identifiers masked. */
function patternOf(body: string): string {
  const line = body.length > MAX_PATTERN ? body.slice(0, MAX_PATTERN) : body;
  const masked = line.replace(/\d+/g, "#");
  // Digits are gone, so a hexadecimal word has its letters between them.
  return masked === line || !HEXADECIMAL.test(masked)
    ? masked
    : masked.replace(/\b(?:[a-f]*#){2,}[a-f]*\b|0x#?[a-f#]*|\b#[a-f]+\b/gi, "#");
}
