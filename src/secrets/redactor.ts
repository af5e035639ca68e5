import type { RedactionStream, Redactor } from "../core/secrets.ts";
import { FormMatcher } from "./form-matcher.ts";
import { MaskedText } from "./masked-text.ts";
import { secretForms } from "./secret-forms.ts";
import type { SecretMemory } from "./secret-memory.ts";

/** Stands where a text was cut. */
const ELLIPSIS = "…".charCodeAt(0);

/** Least beginning of a secret that is masked where a text was cut; where it just ends, it has to be half of it, too. */
const MIN_BEGINNING = 8;

/**
 * A redactor of the values in a memory, also of those that are added later. Masks each value as it is and encoded, in
 * any case of its letters; values shorter than 6 characters only where they stand as a word of their own. Where a text
 * was cut, as `…` says, or ends, the beginning of a secret is masked too. Takes time in proportion to the text.
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
      const forms = current();
      if (forms.empty || forms.nextStart(value, 0) === value.length) return value;
      const scan = new Scan(current);
      return scan.push(value) + scan.end();
    },
    stream: () => new Scan(current),
  };
}

class Scan implements RedactionStream {
  readonly #current: () => FormMatcher;
  readonly #text = new MaskedText();
  #matcher: FormMatcher;
  #state = 0;
  /** How much of the held text the matcher has seen. */
  #seen = 0;
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
    this.#text.append(piece);
    if (matcher.empty) return this.#release(this.#text.held.length);
    this.#search();
    const open = this.#text.held.length - matcher.openLength(this.#state);
    return this.#release(this.#word === undefined ? open : Math.min(open, this.#word.start));
  }

  end(): string {
    if (this.#word !== undefined) this.#text.cover(this.#word.start, this.#word.end);
    this.#coverBeginning(this.#state, this.#text.held.length, false);
    const rest = this.#release(this.#text.held.length);
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
    const text = this.#text.held;
    const matcher = this.#matcher;
    let state = this.#state;
    for (let i = this.#seen; i < text.length; i++) {
      if (this.#word !== undefined) this.#settleWord(text, i);
      if (state === 0) i = matcher.nextStart(text, i);
      if (i === text.length) break;
      if (text.charCodeAt(i) === ELLIPSIS) this.#coverBeginning(state, i, true);
      state = matcher.settle(matcher.step(state, text.charCodeAt(i)), text, i + 1);
      if (state !== 0 && matcher.ends(state)) this.#note(state, i + 1);
    }
    this.#state = state;
    this.#seen = text.length;
  }

  #note(state: number, end: number): void {
    for (const { length, wholeWord } of this.#matcher.endings(state)) {
      const start = end - length;
      if (!wholeWord) {
        this.#text.cover(start, end);
        return;
      }
      const before = start === 0 ? this.#before : (this.#text.held[start - 1] ?? "");
      if (this.#word === undefined && !isWordCharacter(before)) this.#word = { start, end };
    }
  }

  /** The text ends before a place, or was cut there: what is the beginning of a secret does not stay. */
  #coverBeginning(state: number, end: number, cut: boolean): void {
    const { length, of } = this.#matcher.progress(state);
    if (length >= MIN_BEGINNING && (cut || length * 2 >= of)) this.#text.cover(Math.max(0, end - length), end);
  }

  /** The character after a whole-word match is known now. */
  #settleWord(text: string, at: number): void {
    const word = this.#word;
    if (word === undefined || word.end !== at) return;
    this.#word = undefined;
    if (!isWordCharacter(text[at] ?? "")) this.#text.cover(word.start, word.end);
  }

  #release(limit: number): string {
    if (limit > 0) this.#before = this.#text.held[limit - 1] ?? "";
    this.#seen = Math.max(0, this.#seen - limit);
    if (this.#word !== undefined) this.#word = { start: this.#word.start - limit, end: this.#word.end - limit };
    return this.#text.release(limit);
  }
}

/** Letters, digits and `_`, apart from scripts that write words without spaces between them. */
function isWordCharacter(unit: string): boolean {
  return /[\p{L}\p{N}_]/u.test(unit) && !/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u.test(unit);
}
