/** A text to find. */
export interface Form {
  readonly text: string;
  /** Counts only where it stands by itself: a short secret such as `1234` must not tear other words apart. */
  readonly wholeWord: boolean;
}

const ASCII = 128;

/** How many units of a text tell whether a form may begin there, and how many different answers are told apart. */
const GRAM = 3;
const GRAMS = 0x4_0000;
/** Longest stride over a text in which nothing begins. */
const MAX_STRIDE = 8;

/** A code unit takes 16 bits of an edge's key. */
const UNITS = 0x1_0000;

/** The code unit with A to Z as a to z: forms are found in any case, percent-encoded ones in mixed case too. */
function fold(unit: number): number {
  return unit >= 65 && unit <= 90 ? unit + 32 : unit;
}

/** Six bits of a unit below 128, the same for both cases of a letter: of letters and digits each has its own. */
const SIX_BITS = Uint8Array.from({ length: 128 }, (_, unit) => {
  const folded = fold(unit);
  if (folded >= 97 && folded <= 122) return folded - 97;
  return folded >= 48 && folded <= 57 ? folded - 22 : 36 + ((folded * 7) % 28);
});

/** Three units as a number; few others have the same. */
function gramAt(text: string, at: number): number {
  const a = SIX_BITS[text.charCodeAt(at) & 0x7f] ?? 0;
  const b = SIX_BITS[text.charCodeAt(at + 1) & 0x7f] ?? 0;
  return (a << 12) | (b << 6) | (SIX_BITS[text.charCodeAt(at + 2) & 0x7f] ?? 0);
}

/**
 * Finds many texts in one pass, letters of ASCII in any case, in time that grows with the length of what is searched alone, whatever stands in
 * it. Source: A. Aho, M. Corasick, "Efficient string matching", CACM 18 (1975).
 *
 * A state is the longest beginning of any form that the text seen so far ends with; state 0 is "none".
 */
export class FormMatcher {
  readonly #edges = new Map<number, number>();
  /** First step from state 0, by ASCII code: most of any text never leaves it. */
  readonly #start = new Int32Array(ASCII);
  readonly #depth: number[] = [0];
  readonly #fallback: number[] = [0];
  /** 0: no form ends here; 1: one that counts as a whole word only; 2: one that counts anywhere. */
  readonly #ends: (0 | 1 | 2)[] = [0];
  /** The state itself or the nearest fallback where a form ends; 0: none. */
  readonly #found: number[] = [0];
  /** How many characters may be the beginning of a longer match. */
  readonly #open: number[] = [0];
  /** Length of the shortest form that goes on from here, or ends here. */
  readonly #whole: number[] = [0];
  /** What forms begin with: of most places in a text this alone says that none begins there. */
  readonly #grams = new Uint8Array(GRAMS);
  /** What stands anywhere in the first units of forms: where one of these is not, none begins for a stride before. */
  readonly #inner = new Uint8Array(GRAMS);
  #stride = MAX_STRIDE;
  /** Whether a form is too short for that. */
  #short = false;

  constructor(forms: readonly Form[]) {
    for (const { text } of forms) this.#stride = Math.max(1, Math.min(this.#stride, text.length - GRAM + 1));
    for (const form of forms) this.#add(form);
    this.#link();
  }

  /** Whether there is nothing to find. */
  get empty(): boolean {
    return this.#depth.length === 1;
  }

  /** The state after one more code unit. */
  step(state: number, given: number): number {
    const unit = fold(given);
    let from = state;
    while (from !== 0) {
      const next = this.#edges.get(from * UNITS + unit);
      if (next !== undefined) return next;
      from = this.#fallback[from] ?? 0;
    }
    return unit < ASCII ? (this.#start[unit] ?? 0) : (this.#edges.get(unit) ?? 0);
  }

  /** The first place at or after `from` that a form may begin at; the length of the text where there is none. */
  nextStart(text: string, from: number): number {
    if (this.#short) return this.#nextFirst(text, from);
    const last = text.length - GRAM;
    const stride = this.#stride;
    if (stride === 1) return this.#nextGram(text, from, last);
    let next = from;
    for (let at = from + stride - 1; at <= last; at += stride) {
      if (this.#inner[gramAt(text, at)] !== 0) {
        for (let start = next; start <= at; start++) if (this.#grams[gramAt(text, start)] !== 0) return start;
      }
      next = at + 1;
    }
    return this.#nextGram(text, next, last);
  }

  /** The same place by place. */
  #nextGram(text: string, from: number, last: number): number {
    let at = from;
    if (at <= last) {
      const grams = this.#grams;
      let a = SIX_BITS[text.charCodeAt(at) & 0x7f] ?? 0;
      let b = SIX_BITS[text.charCodeAt(at + 1) & 0x7f] ?? 0;
      for (; at <= last; at++) {
        const c = SIX_BITS[text.charCodeAt(at + 2) & 0x7f] ?? 0;
        if (grams[(a << 12) | (b << 6) | c] !== 0) return at;
        a = b;
        b = c;
      }
    }
    return this.#nextFirst(text, at);
  }

  /** The same by the first unit alone. */
  #nextFirst(text: string, from: number): number {
    let at = from;
    for (; at < text.length; at++) {
      const unit = fold(text.charCodeAt(at));
      if (unit < ASCII ? this.#start[unit] !== 0 : this.#edges.has(unit)) break;
    }
    return at;
  }

  /**
   * The state, less what only looks like the beginning of a form since its first units are: `end` is the place in the
   * text right after the unit that led to it. Without this a search would hardly ever be back in state 0.
   */
  settle(state: number, text: string, end: number): number {
    let at = state;
    while (at !== 0) {
      const depth = this.#depth[at] ?? 0;
      const start = end - depth;
      if (depth >= GRAM || this.#short || start < 0 || start + GRAM > text.length) return at;
      if (this.#grams[gramAt(text, start)] !== 0) return at;
      at = this.#fallback[at] ?? 0;
    }
    return at;
  }

  /** How many characters at the end may yet become a match. */
  openLength(state: number): number {
    return this.#open[state] ?? 0;
  }

  /** The state of the longest shorter text that the text ends with and a form begins with. */
  shorter(state: number): number {
    return this.#fallback[state] ?? 0;
  }

  /** How many characters of a form are there, and how many it has. */
  progress(state: number): { readonly length: number; readonly of: number } {
    return { length: this.#depth[state] ?? 0, of: this.#whole[state] ?? 0 };
  }

  /** Forms that end here, longest first. */
  *endings(state: number): Generator<{ readonly length: number; readonly wholeWord: boolean }> {
    for (let at = this.#found[state] ?? 0; at !== 0; at = this.#found[this.#fallback[at] ?? 0] ?? 0) {
      yield { length: this.#depth[at] ?? 0, wholeWord: this.#ends[at] === 1 };
    }
  }

  /** Whether any form ends here. */
  ends(state: number): boolean {
    return this.#found[state] !== 0;
  }

  #add(form: Form): void {
    const { text } = form;
    if (text.length < GRAM) this.#short ||= text !== "";
    else {
      this.#grams[gramAt(text, 0)] = 1;
      for (let at = 0; at < this.#stride; at++) this.#inner[gramAt(text, at)] = 1;
    }
    let state = 0;
    for (let i = 0; i < text.length; i++) {
      const key = state * UNITS + fold(text.charCodeAt(i));
      let next = this.#edges.get(key);
      if (next === undefined) {
        next = this.#depth.length;
        this.#edges.set(key, next);
        this.#depth.push(i + 1);
        this.#fallback.push(0);
        this.#ends.push(0);
        this.#found.push(0);
        this.#open.push(0);
        this.#whole.push(text.length);
      }
      this.#whole[next] = Math.min(this.#whole[next] ?? 0, text.length);
      state = next;
    }
    if (state !== 0) this.#ends[state] = form.wholeWord && this.#ends[state] !== 2 ? 1 : 2;
  }

  /** Edges were made in an order in which a parent stands before its children, but depths must be done in turn. */
  #link(): void {
    const edges = [...this.#edges].toSorted(([, a], [, b]) => (this.#depth[a] ?? 0) - (this.#depth[b] ?? 0));
    const parents = new Set(edges.map(([key]) => Math.floor(key / UNITS)));
    for (const [key, state] of edges) {
      const parent = Math.floor(key / UNITS);
      const unit = key % UNITS;
      if (parent === 0 && unit < ASCII) this.#start[unit] = state;
      const fallback = parent === 0 ? 0 : this.step(this.#fallback[parent] ?? 0, unit);
      this.#fallback[state] = fallback;
      this.#found[state] = this.#ends[state] === 0 ? (this.#found[fallback] ?? 0) : state;
      this.#open[state] = parents.has(state) ? (this.#depth[state] ?? 0) : (this.#open[fallback] ?? 0);
    }
  }
}
