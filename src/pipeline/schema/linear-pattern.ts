import { RE2JS, RE2JSException } from "re2js";
import { isEcmaPattern } from "../../core/linear-search.ts";
import { codePointCount } from "../../core/text.ts";
import { translatePattern } from "../../core/translate-pattern.ts";
import type { WorkMeter } from "./work-meter.ts";

/** Longest pattern, in characters. */
const MAX_PATTERN_LENGTH = 1_000;

/** RE2 copies what stands before a count: the pattern's length times the sum of its counts is about the program's size. */
const MAX_EXPANSION = 20_000;

/** Most instructions of a compiled pattern. */
const MAX_PROGRAM = 3_000;

/** Characters times instructions below which a match is over in no time. */
const FREE_WORK = 10_000;

/** Instructions that may run between two looks at the clock. */
const WORK_BETWEEN_LOOKS = 20_000;

/** What a pattern costs before anything of it is compiled, in microseconds, which is the unit of its work. */
const BASE_WORK = 100;

/** What each copy of a Unicode class costs: these have hundreds of ranges. An instruction costs 1. */
const CLASS_WORK = 60;

/** Most work of one pattern. */
const MAX_WORK = 10_000;

/** A regular expression that takes time in proportion to the text, whatever the pattern and the text. */
export interface LinearPattern {
  /** Whether it matches somewhere in the text. @throws WorkLimitReached. */
  test(text: string, meter: WorkMeter): boolean;
}

/** `\p{L}` and the like, in a class or alone. */
const UNICODE_CLASS = /\\[pP]/;

/** Outcome of reading a pattern. */
export type PatternOutcome =
  | {
      readonly ok: true;
      readonly pattern: LinearPattern;
      /** About how many microseconds it took to compile. */
      readonly work: number;
    }
  | { readonly ok: false; readonly problem: string };

/** Reads patterns as {@link compilePattern} does. */
export type CompilePattern = (source: string) => PatternOutcome;

/**
 * Remembers the last patterns, at most so many: tools that come in numbers share theirs, and a pattern takes 0.4 ms,
 * more than half of what is spent on the rest of a declaration.
 */
export function rememberPatterns(limit: number): CompilePattern {
  const known = new Map<string, PatternOutcome>();
  return (source) => {
    const outcome = known.get(source) ?? compilePattern(source);
    known.delete(source);
    known.set(source, outcome);
    for (const oldest of known.keys()) {
      if (known.size <= limit) break;
      known.delete(oldest);
    }
    return outcome;
  };
}

/**
 * Compiles an ECMAScript pattern for an engine without backtracking, so that `^(a+)+$` cannot stop the event loop.
 * Look-around, back-references and counts over 1,000 are beyond such an engine and refused, except a count over the
 * whole text such as `^.{1,5000}$`, which is checked by length.
 */
export function compilePattern(source: string): PatternOutcome {
  if (source.length > MAX_PATTERN_LENGTH) return refuse(`longer than ${MAX_PATTERN_LENGTH} characters`);
  if (!isEcmaPattern(source)) return refuse("not a regular expression");
  const tokens = translatePattern(source);
  const counted = countedWhole(tokens);
  if (counted !== undefined) return counted;
  const counts = tokens.map(repeats).reduce((sum, count) => sum + count, 1);
  const work = BASE_WORK + classCopies(tokens) * CLASS_WORK;
  if (tokens.join("").length * counts > MAX_EXPANSION || work > MAX_WORK) return refuse("its counts make it too large");
  return compileTranslated(tokens.join(""), work);
}

function compileTranslated(translated: string, work: number): PatternOutcome {
  let engine: RE2JS;
  try {
    engine = RE2JS.compile(translated);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return refuse("look-around, back-references and counts over 1,000 cannot be run in linear time");
  }
  const size = engine.programSize();
  if (size > MAX_PROGRAM) return refuse("its counts make it too large");
  return {
    ok: true,
    work: work + size,
    pattern: {
      test(text, meter) {
        if (text.length * size <= FREE_WORK) return engine.test(text);
        // The engine takes String objects as well, and reads them one character at a time.
        return engine.test(new MeteredText(text, meter, size) as unknown as string);
      },
    },
  };
}

/** `^X{m,n}$` for one X: any number of X, and the length counted. */
function countedWhole(tokens: readonly string[]): PatternOutcome | undefined {
  const [begin, atom, count, end] = tokens;
  if (tokens.length !== 4 || begin !== "^" || end !== "$" || atom === undefined || count === undefined)
    return undefined;
  const range = /^\{(\d+)(,?)(\d*)\}$/.exec(count);
  if (range === null || "()^$*+?|".includes(atom)) return undefined;
  const min = Number(range[1]);
  const max = range[2] === "" ? min : range[3] === "" ? Number.POSITIVE_INFINITY : Number(range[3]);
  const outcome = compileTranslated(`^${atom}*$`, BASE_WORK + CLASS_WORK);
  if (!outcome.ok) return outcome;
  return {
    ok: true,
    work: outcome.work,
    pattern: {
      test(text, meter) {
        if (text.length < min || text.length > 2 * max) return false;
        const length = codePointCount(text);
        return length >= min && length <= max && outcome.pattern.test(text, meter);
      },
    },
  };
}

/** How many copies of Unicode classes there are once all counts are written out, those of groups included. */
function classCopies(tokens: readonly string[]): number {
  const outer: number[] = [];
  let sum = 0;
  let last = 0;
  for (const token of tokens) {
    const count = repeats(token);
    if (count > 0) last *= count;
    else if (token.startsWith("(")) {
      outer.push(sum + last);
      [sum, last] = [0, 0];
    } else if (token === ")") {
      last += sum;
      sum = outer.pop() ?? 0;
    } else {
      sum += last;
      last = UNICODE_CLASS.test(token) ? 1 : 0;
    }
  }
  return sum + last;
}

function repeats(token: string): number {
  const range = /^\{(\d+)(?:,(\d*))?\}$/.exec(token);
  return range === null ? 0 : Number(range[2] || range[1]);
}

function refuse(problem: string): PatternOutcome {
  return { ok: false, problem };
}

/** Text that looks at the clock now and then while it is read. */
class MeteredText extends String {
  readonly #text: string;
  readonly #meter: WorkMeter;
  readonly #every: number;
  #left: number;

  constructor(text: string, meter: WorkMeter, programSize: number) {
    super(text);
    this.#text = text;
    this.#meter = meter;
    this.#every = Math.max(1, Math.floor(WORK_BETWEEN_LOOKS / programSize));
    this.#left = this.#every;
  }

  override charCodeAt(index: number): number {
    if (--this.#left <= 0) {
      this.#left = this.#every;
      this.#meter.look();
    }
    return this.#text.charCodeAt(index);
  }
}
