import type { RedactionStream, Redactor } from "../core/secrets.ts";
import { FormMatcher } from "./form-matcher.ts";
import { secretForms } from "./secret-forms.ts";
import type { SecretMemory } from "./secret-memory.ts";

const MASK = "***";

/** A stretch of text to mask. */
interface Span {
  readonly start: number;
  readonly end: number;
  /** Its mask was let go already, with the beginning of it. */
  readonly shown: boolean;
}

/**
 * A redactor of the values in a memory, also of those that are added later. Masks each value as it is, in upper and
 * lower case, and in URL, JSON and base64 form; values shorter than 6 characters only where they stand as a word of
 * their own. Takes time in proportion to the text.
 */
export function createRedactor(memory: SecretMemory): Redactor {
  let matcher = new FormMatcher([]);
  let version = -1;

  function current(): FormMatcher {
    if (version !== memory.version) {
      version = memory.version;
      matcher = new FormMatcher(memory.values().flatMap(secretForms));
    }
    return matcher;
  }

  return {
    text(value) {
      if (current().empty) return value;
      const scan = new Scan(current);
      return scan.push(value) + scan.end();
    },
    stream: () => new Scan(current),
  };
}

class Scan implements RedactionStream {
  readonly #current: () => FormMatcher;
  #matcher: FormMatcher;
  #state = 0;
  /** Text that was not let go. */
  #held = "";
  /** How much of it the matcher has seen. */
  #seen = 0;
  /** Where to mask, in order, apart from each other. */
  #spans: Span[] = [];
  /** A whole-word match that counts unless a letter or digit follows. */
  #word: { readonly start: number; readonly end: number } | undefined;
  /** The code unit before the held text. */
  #before = "";

  constructor(current: () => FormMatcher) {
    this.#current = current;
    this.#matcher = current();
  }

  push(piece: string): string {
    const matcher = this.#current();
    if (matcher !== this.#matcher) this.#restart(matcher);
    if (matcher.empty) {
      const all = this.#held + piece;
      this.#held = "";
      return all;
    }
    this.#held += piece;
    this.#search();
    const open = this.#held.length - matcher.openLength(this.#state);
    return this.#release(this.#word === undefined ? open : Math.min(open, this.#word.start));
  }

  end(): string {
    if (this.#word !== undefined) this.#cover(this.#word.start, this.#word.end);
    const rest = this.#release(this.#held.length);
    this.#restart(this.#current());
    this.#before = "";
    return rest;
  }

  /** A secret came or went: what is held is searched again. */
  #restart(matcher: FormMatcher): void {
    this.#matcher = matcher;
    this.#state = 0;
    this.#seen = 0;
    this.#word = undefined;
  }

  #search(): void {
    const text = this.#held;
    const matcher = this.#matcher;
    let state = this.#state;
    for (let i = this.#seen; i < text.length; i++) {
      if (this.#word !== undefined) this.#settleWord(text, i);
      if (state === 0) i = matcher.nextStart(text, i);
      if (i === text.length) break;
      state = matcher.step(state, text.charCodeAt(i));
      if (state !== 0 && matcher.ends(state)) this.#note(state, i + 1);
    }
    this.#state = state;
    this.#seen = text.length;
  }

  #note(state: number, end: number): void {
    for (const { length, wholeWord } of this.#matcher.endings(state)) {
      const start = end - length;
      if (!wholeWord) {
        this.#cover(start, end);
        return;
      }
      const before = start === 0 ? this.#before : (this.#held[start - 1] ?? "");
      if (this.#word === undefined && !isWordCharacter(before)) this.#word = { start, end };
    }
  }

  /** The character after a whole-word match is known now. */
  #settleWord(text: string, at: number): void {
    const word = this.#word;
    if (word === undefined || word.end !== at) return;
    this.#word = undefined;
    if (!isWordCharacter(text[at] ?? "")) this.#cover(word.start, word.end);
  }

  #cover(start: number, end: number): void {
    let from = start;
    let shown = false;
    for (let last = this.#spans.at(-1); last !== undefined && last.end > from; last = this.#spans.at(-1)) {
      from = Math.min(from, last.start);
      shown = last.shown;
      this.#spans.pop();
    }
    this.#spans.push({ start: from, end, shown });
  }

  /** Lets go of the text before `limit`, masked; a span that reaches over it shows its mask now. */
  #release(limit: number): string {
    const text = this.#held;
    const rest: Span[] = [];
    let out = "";
    let from = 0;
    for (const span of this.#spans) {
      if (span.start >= limit) {
        rest.push({ ...span, start: span.start - limit, end: span.end - limit });
        continue;
      }
      out += text.slice(from, span.start) + (span.shown ? "" : MASK);
      from = Math.min(span.end, limit);
      if (span.end > limit) rest.push({ start: 0, end: span.end - limit, shown: true });
    }
    out += text.slice(from, limit);
    this.#spans = rest;
    if (limit > 0) this.#before = text[limit - 1] ?? "";
    this.#held = text.slice(limit);
    this.#seen = Math.max(0, this.#seen - limit);
    if (this.#word !== undefined) this.#word = { start: this.#word.start - limit, end: this.#word.end - limit };
    return out;
  }
}

/** Letters, digits and `_`, apart from scripts that write words without spaces between them. */
function isWordCharacter(unit: string): boolean {
  return /[\p{L}\p{N}_]/u.test(unit) && !/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u.test(unit);
}
