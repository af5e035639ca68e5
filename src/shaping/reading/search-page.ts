import { RE2JS, RE2JSException } from "re2js";
import { isJsonArray, isJsonObject, type JsonValue, jsonPointer, stringifyJson } from "../../core/json.ts";
import { queryInvalid, type ResultQuery, type ResultSource } from "../../core/results.ts";
import { codePointCount, headIndex, tailIndex } from "../../core/text.ts";
import type { Place } from "./cursor.ts";
import { segmentsFrom } from "./text-scan.ts";

type SearchQuery = Extract<ResultQuery, { type: "search" }>;

/** Longest pattern, in characters, and most instructions of a compiled one. */
const MAX_PATTERN = 1_000;
const MAX_PROGRAM = 3_000;

/** Most matches of a page where the query does not say. */
const DEFAULT_MATCHES = 50;
const MAX_MATCHES = 500;

/** Characters shown before and after a match in a long line. */
const AROUND = 200;

/** Most bytes looked through for one page: plain text, and with a regular expression. */
const MAX_LITERAL_BYTES = 64 * 1024 * 1024;
const MAX_REGEX_BYTES = 8 * 1024 * 1024;

/** Longest time spent on one page, in milliseconds. */
const MAX_MS = 1_000;

/** Matches as JSON text, and where to look on. */
export interface SearchPage {
  readonly text: string;
  readonly next: Place | undefined;
}

/** Where a pattern stands in a text; undefined: it does not. */
export type FindIn = (text: string) => { readonly start: number; readonly end: number } | undefined;

/**
 * Makes what finds a pattern, in time proportional to the text.
 *
 * @throws GatewayError RESULT_QUERY_INVALID.
 */
function createFind({ pattern, regex, ignoreCase }: SearchQuery): FindIn {
  if (pattern === "") throw queryInvalid("search.pattern", "must say what to look for, got nothing");
  if (pattern.length > MAX_PATTERN) throw queryInvalid("search.pattern", `may have at most ${MAX_PATTERN} characters`);
  if (!regex && !ignoreCase) {
    return (text) => {
      const start = text.indexOf(pattern);
      return start < 0 ? undefined : { start, end: start + pattern.length };
    };
  }
  const engine = compile(regex ? pattern : RE2JS.quote(pattern), ignoreCase);
  return (text) => {
    const matcher = engine.matcher(text);
    return matcher.find() ? { start: matcher.start(), end: matcher.end() } : undefined;
  };
}

function compile(pattern: string, ignoreCase: boolean): RE2JS {
  let engine: RE2JS;
  try {
    engine = RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw queryInvalid(
      "search.pattern",
      "is no regular expression that runs in linear time: look-around and back-references do not exist here",
    );
  }
  if (engine.programSize() > MAX_PROGRAM)
    throw queryInvalid("search.pattern", "is too large once its counts are written out");
  return engine;
}

/** Lines in which a pattern stands, each once. */
export async function searchText(
  source: ResultSource,
  { query, byte = 0 }: Place & { readonly query: SearchQuery },
  { maxLength, signal }: { readonly maxLength: number; readonly signal: AbortSignal },
): Promise<SearchPage> {
  const find = createFind(query);
  const matches = new Matches(query, maxLength);
  const untilByte = byte + (query.regex ? MAX_REGEX_BYTES : MAX_LITERAL_BYTES);
  const untilMs = performance.now() + MAX_MS;
  let next = byte;
  let matchedEnd = 0;
  // The line of the first byte is that of the cursor: lines are counted from there on.
  for await (const { text, line, byte: at, bytes } of segmentsFrom(source, byte, 1, signal)) {
    if (matches.full || at >= untilByte || performance.now() > untilMs) break;
    const found = findAfter(find, text, at, matchedEnd);
    if (found !== undefined) {
      const fact = byte === 0 ? { line, byte: at } : { byte: at };
      if (!matches.add({ ...fact, text: around(text, found) })) break;
      matchedEnd = at + Buffer.byteLength(text.slice(0, found.end));
    }
    next = at + bytes;
  }
  const over = next >= source.facts.bytes;
  return { text: matches.text(over), next: over ? undefined : { query, byte: next } };
}

/** As `find`, but for what begins before a byte: parts of a long line overlap. */
function findAfter(find: FindIn, text: string, at: number, byte: number): ReturnType<FindIn> {
  if (byte <= at) return find(text);
  const seen = Buffer.from(text)
    .subarray(0, byte - at)
    .toString("utf8").length;
  const found = find(text.slice(seen));
  return found === undefined ? undefined : { start: found.start + seen, end: found.end + seen };
}

/** Places in a JSON value, by path, where a pattern stands in a value or in the name of a field. */
export function searchJson(
  root: JsonValue,
  { query, byte: from = 0 }: Place & { readonly query: SearchQuery },
  maxLength: number,
): SearchPage {
  const find = createFind(query);
  const matches = new Matches(query, maxLength);
  const untilMs = performance.now() + MAX_MS;
  let nth = 0;
  for (const { steps, name, text } of leavesOf(root, [])) {
    if (nth >= from) {
      const found = find(text) ?? (name === undefined ? undefined : find(name) && { start: 0, end: 0 });
      if (matches.full || (nth % 256 === 0 && performance.now() > untilMs)) {
        return { text: matches.text(false), next: { query, byte: nth } };
      }
      if (found !== undefined && !matches.add({ path: jsonPointer(steps), value: around(text, found) })) {
        return { text: matches.text(false), next: { query, byte: nth } };
      }
    }
    nth += 1;
  }
  return { text: matches.text(true), next: undefined };
}

interface Leaf {
  readonly steps: readonly (string | number)[];
  /** Of the field that it is; undefined: an item of a list. */
  readonly name: string | undefined;
  readonly text: string;
}

function* leavesOf(
  value: JsonValue,
  steps: readonly (string | number)[],
  name?: string,
): Generator<Leaf, void, undefined> {
  if (isJsonArray(value)) {
    for (const [i, item] of value.entries()) yield* leavesOf(item, [...steps, i]);
  } else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) yield* leavesOf(item, [...steps, key], key);
  } else yield { steps, name, text: typeof value === "string" ? value : stringifyJson(value) };
}

function around(text: string, { start, end }: { readonly start: number; readonly end: number }): string {
  const before = text.slice(tailIndex(text.slice(0, start), AROUND), start);
  const rest = text.slice(end);
  const after = rest.slice(0, headIndex(rest, AROUND));
  const match = text.slice(start, end);
  const shown = match.slice(0, headIndex(match, 2 * AROUND));
  const [left, right] = [before.length < start ? "…" : "", after.length < rest.length ? "…" : ""];
  return left + before + shown + after + right;
}

/** Matches that fit a page. */
class Matches {
  readonly #most: number;
  readonly #texts: string[] = [];
  #room: number;

  constructor({ limit }: SearchQuery, maxLength: number) {
    this.#most = limit === 0 ? DEFAULT_MATCHES : Math.min(limit, MAX_MATCHES);
    this.#room = maxLength - 40;
  }

  get full(): boolean {
    return this.#texts.length >= this.#most;
  }

  /** False where there is no room for it. */
  add(match: { readonly [name: string]: JsonValue }): boolean {
    const text = stringifyJson(match);
    this.#room -= codePointCount(text) + 1;
    if (this.#room < 0 && this.#texts.length > 0) return false;
    this.#texts.push(text);
    return true;
  }

  /** `all`: the whole result was looked through. */
  text(all: boolean): string {
    return `{"matches":[${this.#texts.join(",")}],"searched_all":${all}}`;
  }
}
