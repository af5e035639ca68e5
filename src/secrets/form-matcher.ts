import type { SecretForm } from "./secret-forms.ts";

const ASCII = 128;

/** A code unit takes 16 bits of an edge's key. */
const UNITS = 0x1_0000;

/**
 * Finds many texts in one pass, in time that grows with the length of what is searched alone, whatever stands in
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

  constructor(forms: Iterable<SecretForm>) {
    for (const form of forms) this.#add(form);
    this.#link();
  }

  /** Whether there is nothing to find. */
  get empty(): boolean {
    return this.#depth.length === 1;
  }

  /** The state after one more code unit. */
  step(state: number, unit: number): number {
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
    let at = from;
    for (; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit < ASCII ? this.#start[unit] !== 0 : this.#edges.has(unit)) break;
    }
    return at;
  }

  /** How many characters at the end may yet become a match. */
  openLength(state: number): number {
    return this.#open[state] ?? 0;
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

  #add(form: SecretForm): void {
    let state = 0;
    for (let i = 0; i < form.text.length; i++) {
      const key = state * UNITS + form.text.charCodeAt(i);
      let next = this.#edges.get(key);
      if (next === undefined) {
        next = this.#depth.length;
        this.#edges.set(key, next);
        this.#depth.push(i + 1);
        this.#fallback.push(0);
        this.#ends.push(0);
        this.#found.push(0);
        this.#open.push(0);
      }
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
