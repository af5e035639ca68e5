import type { RedactionStream, Redactor } from "../core/secrets.ts";
import { BeginningFilter } from "./beginning-filter.ts";
import { FormMatcher } from "./form-matcher.ts";
import { MaskedText } from "./masked-text.ts";
import { TOKEN_SHAPES, type TokenShape } from "./token-shapes.ts";

const WORD = /^[A-Za-z0-9_]$/;

/** An escape of JSON or of a URL at the end of a text. */
const ESCAPE = /(?:\\[nrtbf]|%[0-9A-Fa-f]{2})$/;

/** Stands where a text was cut: what is the beginning of a token does not stay. */
const ELLIPSIS = "…".charCodeAt(0);

/** Least beginning of a token that is masked there. */
const MIN_BEGINNING = 12;

/** How far what may be a token has got. Places count from what was not let go. */
interface Candidate {
  readonly shape: TokenShape;
  /** Where its mask begins. */
  start: number;
  /** Which part of the shape comes next, and how many characters of it there are. */
  part: number;
  count: number;
  /** It has all that its shape asks for. */
  sure: boolean;
  /** It is sure and its mask was let go. */
  shown: boolean;
}

/** What one more character makes of a candidate: it goes on, it was none, or it ended before this character or with it. */
type Step = "on" | "none" | "ended-before" | "ended";

/**
 * A redactor of everything that has the shape of a well-known credential. What a stream keeps back is at most the
 * beginning of a token until it is sure, some 1,000 characters at most; what comes behind that is masked as it comes.
 * Takes time in proportion to the text.
 */
export function createTokenRedactor(shapes: readonly TokenShape[] = TOKEN_SHAPES): Redactor {
  const beginnings = new Map(
    shapes.flatMap((shape) => shape.begins.map((text) => [text.toLowerCase(), { text, shape }] as const)),
  );
  const matcher = new FormMatcher([...beginnings.keys()].map((text) => ({ text, wholeWord: false })));
  const filter = new BeginningFilter(beginnings.keys());
  const begun = (found: string): TokenShape | undefined => {
    const known = beginnings.get(found.toLowerCase());
    return known !== undefined && (known.shape.scheme === true || known.text === found) ? known.shape : undefined;
  };
  return {
    text(value) {
      if (!filter.isIn(value)) return value;
      const scan = new TokenScan(matcher, begun);
      return scan.push(value) + scan.end();
    },
    stream: () => new TokenScan(matcher, begun),
  };
}

class TokenScan implements RedactionStream {
  readonly #matcher: FormMatcher;
  readonly #begun: (found: string) => TokenShape | undefined;
  readonly #text = new MaskedText();
  #candidates: Candidate[] = [];
  #state = 0;
  #seen = 0;
  /** The three code units before the held text. */
  #before = "";

  constructor(matcher: FormMatcher, begun: (found: string) => TokenShape | undefined) {
    this.#matcher = matcher;
    this.#begun = begun;
  }

  push(piece: string): string {
    this.#text.append(piece);
    this.#search();
    let limit = this.#text.held.length - this.#openLength();
    for (const { sure, start } of this.#candidates) if (!sure) limit = Math.min(limit, start);
    return this.#release(limit);
  }

  end(): string {
    const rest = this.#release(this.#text.held.length);
    this.#candidates = [];
    this.#state = 0;
    this.#seen = 0;
    this.#before = "";
    return rest;
  }

  #search(): void {
    const text = this.#text.held;
    const matcher = this.#matcher;
    for (let i = this.#seen; i < text.length; i++) {
      if (this.#state === 0 && this.#candidates.length === 0) i = matcher.nextStart(text, i);
      if (i === text.length) break;
      const unit = text.charCodeAt(i);
      if (this.#candidates.length > 0) this.#candidates = this.#candidates.filter((one) => this.#goOn(one, unit, i));
      this.#state = matcher.settle(matcher.step(this.#state, unit), text, i + 1);
      if (this.#state !== 0 && matcher.ends(this.#state)) this.#begin(i + 1);
    }
    this.#seen = text.length;
  }

  #begin(end: number): void {
    const text = this.#text.held;
    for (const { length } of this.#matcher.endings(this.#state)) {
      const start = end - length;
      const shape = this.#begun(text.slice(start, end));
      if (shape === undefined || this.#candidates.some((one) => one.shape === shape)) continue;
      if (shape.inWords !== true && this.#inWord(start)) continue;
      const first: Candidate = {
        shape,
        start: shape.scheme === true ? end : start,
        part: 0,
        count: 0,
        sure: false,
        shown: false,
      };
      this.#candidates.push(this.#settled(first, end));
    }
  }

  /** How many characters at the end may be the beginning of a token. */
  #openLength(): number {
    const { held } = this.#text;
    for (let state = this.#state; state !== 0; state = this.#matcher.shorter(state)) {
      const open = this.#matcher.openLength(state);
      const start = held.length - open;
      if (open > 0 && start >= 0 && !(WORD.test(held[start] ?? "") && this.#inWord(start))) return open;
    }
    return 0;
  }

  /** Whether a letter, digit or `_` stands before a place; `\n`, `%20` and the like are none. */
  #inWord(at: number): boolean {
    // What was let go already was in a word.
    if (at < 0) return true;
    const before = (this.#before + this.#text.held.slice(Math.max(0, at - 3), at)).slice(-3);
    return WORD.test(before.slice(-1)) && !ESCAPE.test(before);
  }

  /** Whether there is more to come of a candidate. */
  #goOn(one: Candidate, unit: number, at: number): boolean {
    if (unit === ELLIPSIS && at - one.start >= MIN_BEGINNING) this.#text.cover(Math.max(0, one.start), at, one.shown);
    const step = advance(one, unit);
    if (step === "none") return false;
    if (step === "on" || step === "ended") this.#settled(one, at + 1);
    return step === "on";
  }

  #settled(one: Candidate, end: number): Candidate {
    one.sure ||= isSure(one);
    if (one.sure && end > one.start) this.#text.cover(one.start, end, one.shown);
    return one;
  }

  #release(limit: number): string {
    if (limit > 0) this.#before = (this.#before + this.#text.held.slice(Math.max(0, limit - 3), limit)).slice(-3);
    this.#seen = Math.max(0, this.#seen - limit);
    for (const one of this.#candidates) {
      one.shown ||= one.sure && one.start < limit;
      one.start = Math.max(0, one.start - limit);
    }
    return this.#text.release(limit);
  }
}

/** Whether all that a shape asks for is there; a text that ends where a key goes on is still a key. */
function isSure({ shape, part, count }: Candidate): boolean {
  const next = shape.parts[part];
  if (next === undefined || "until" in next) return true;
  return "run" in next && part === shape.parts.length - 1 && count >= next.min;
}

function advance(one: Candidate, unit: number): Step {
  for (let part = one.shape.parts[one.part]; part !== undefined; part = one.shape.parts[one.part]) {
    if ("text" in part) return inText(one, part.text, unit);
    if ("until" in part) return inUntil(one, part, unit);
    if (one.count < part.max && part.run[unit] === true) {
      one.count++;
      return "on";
    }
    if (one.count < part.min) return "none";
    one.part++;
    one.count = 0;
  }
  return "ended-before";
}

function inText(one: Candidate, text: string, unit: number): Step {
  if (text.charCodeAt(one.count) !== unit) return "none";
  one.count++;
  if (one.count === text.length) {
    one.part++;
    one.count = 0;
  }
  return "on";
}

/** `count` holds two numbers: how much was seen, times the text's length, and how much of the text stands there. */
function inUntil(one: Candidate, { until, max }: { readonly until: string; readonly max: number }, unit: number): Step {
  const seen = Math.floor(one.count / until.length) + 1;
  const had = one.count % until.length;
  const matched = until.charCodeAt(had) === unit ? had + 1 : until.charCodeAt(0) === unit ? 1 : 0;
  if (matched === until.length || seen >= max) return "ended";
  one.count = seen * until.length + matched;
  return "on";
}
