import { RE2JS, RE2JSException } from "re2js";
import { translatePattern } from "./translate-pattern.ts";

/** Longest pattern, in characters. */
const MAX_PATTERN_LENGTH = 1_000;

/** RE2 copies what stands before a count: the pattern's length times the sum of its counts is about the program's size. */
const MAX_EXPANSION = 5_000;

/** Where a pattern matches. */
export interface Match {
  readonly start: number;
  readonly end: number;
}

/** Finds a pattern in texts, in time that grows with the length of the text alone. */
export interface LinearSearch {
  /** The first match from a place on; `undefined`: there is none. */
  first(text: string, from?: number): Match | undefined;
  /** All matches, in order, apart from each other. */
  all(text: string): readonly Match[];
}

/** Outcome of reading a pattern to search for. `problem` goes on after "the pattern is". */
export type SearchOutcome =
  | { readonly ok: true; readonly search: LinearSearch }
  | { readonly ok: false; readonly problem: string };

/**
 * Compiles an ECMAScript pattern for an engine without backtracking. Look-around and back-references are beyond such an
 * engine and refused, and so is what matches the empty text, which is everywhere. `(?i)` in front: in any case.
 */
export function compileSearch(source: string): SearchOutcome {
  if (source.length > MAX_PATTERN_LENGTH) return refuse(`longer than ${MAX_PATTERN_LENGTH} characters`);
  const anyCase = source.startsWith("(?i)");
  const pattern = anyCase ? source.slice(4) : source;
  if (!isEcmaPattern(pattern)) return refuse("not a regular expression");
  const translated = translatePattern(pattern).join("");
  const counts = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].reduce(
    (sum, [, min, max]) => sum + Number(max || min),
    1,
  );
  if (translated.length * counts > MAX_EXPANSION) return refuse("too large, because of its counts");
  let engine: RE2JS;
  try {
    engine = RE2JS.compile(translated, anyCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return refuse("beyond linear time: write it without look-around and back-references, and counts below 1,000");
  }
  if (engine.matcher("").find()) return refuse("one that matches the empty text, which is everywhere");
  return { ok: true, search: searchOf(engine) };
}

function searchOf(engine: RE2JS): LinearSearch {
  return {
    first(text, from = 0) {
      const matcher = engine.matcher(text);
      return matcher.find(from) ? { start: matcher.start(), end: matcher.end() } : undefined;
    },
    all(text) {
      // Nearly every text has none, and to find out takes a fraction of the time.
      if (!engine.test(text)) return [];
      const matches: Match[] = [];
      const matcher = engine.matcher(text);
      while (matcher.find())
        if (matcher.end() > matcher.start()) matches.push({ start: matcher.start(), end: matcher.end() });
      return matches;
    },
  };
}

/** Whether a text is a regular expression of ECMAScript, with the flag `u` or without, as JSON Schema has them. */
export function isEcmaPattern(source: string): boolean {
  return ["u", ""].some((flags) => {
    try {
      return new RegExp(source, flags).flags === flags;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  });
}

function refuse(problem: string): SearchOutcome {
  return { ok: false, problem };
}
