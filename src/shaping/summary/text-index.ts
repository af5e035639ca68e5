import { matchAt, type Question, type Term } from "./question.ts";
import type { Work } from "./work.ts";

/** How well each of many texts fits a question. */
export interface Relevance {
  /** By text: the sum over the words it holds, the rarer the more; 0: none of them. */
  readonly scores: Float64Array;
  /** The highest sum a text could have. */
  readonly most: number;
}

/** Lower-case texts, laid out so that one pass finds a word in all of them. */
export class TextIndex {
  readonly #all: string;
  readonly #starts: Float64Array;

  /** Texts are lower-cased here. */
  constructor(texts: readonly string[]) {
    const lower = texts.map((text) => text.toLowerCase());
    this.#all = lower.join("\n");
    this.#starts = new Float64Array(texts.length + 1);
    let at = 0;
    for (const [i, text] of lower.entries()) {
      this.#starts[i] = at;
      at += text.length + 1;
    }
    this.#starts[texts.length] = at;
  }

  /** How many texts there are. */
  get size(): number {
    return this.#starts.length - 1;
  }

  /** One of the texts, lower case. */
  text(index: number): string {
    return this.#all.slice(this.#start(index), this.#start(index + 1) - 1);
  }

  /** How well the term stands in each text that holds it: 2 as the whole text, 1 as a word, less inside of one. */
  matches(term: Term): Map<number, number> {
    const found = new Map<number, number>();
    let index = 0;
    let at = this.#all.indexOf(term.text);
    while (at >= 0) {
      index = this.#textAt(at, index);
      const match = this.#isWhole(at, term, index) ? 2 : matchAt(this.#all, at, term);
      if (match > (found.get(index) ?? 0)) found.set(index, match);
      at = this.#all.indexOf(term.text, match >= 1 ? this.#start(index + 1) : at + 1);
    }
    return found;
  }

  #isWhole(at: number, term: Term, index: number): boolean {
    return at === this.#start(index) && at + term.text.length === this.#start(index + 1) - 1;
  }

  #start(index: number): number {
    return this.#starts[index] ?? 0;
  }

  /** The text that holds this place, at or after `from`. */
  #textAt(at: number, from: number): number {
    let low = from;
    let high = this.size - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#start(middle) <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Fewest texts of which a word that stands in most of them tells nothing. */
const FEW = 4;

/** Texts looked at to see whether they quote the whole question. */
const BEST = 40;

/**
 * Weighs texts by the words of a question they hold, rare ones more. A word of more than `common` of the texts does not
 * count; a text that holds the whole question counts twice as much as all words together.
 */
export function* weighTexts(index: TextIndex, question: Question, common: number): Work<Relevance> {
  const scores = new Float64Array(index.size);
  const scale = Math.log(1 + index.size);
  let most = 0;
  for (const term of question.terms) {
    const found = index.matches(term);
    yield;
    if (found.size === 0 || (index.size > FEW && found.size > index.size * common)) continue;
    const weight = (term.weight * Math.log(1 + index.size / found.size)) / scale;
    most += weight;
    for (const [text, match] of found) scores[text] = (scores[text] ?? 0) + match * weight;
  }
  if (question.phrase !== "" && most > 0) {
    const best = topOf(scores, BEST);
    for (const i of best) {
      if (index.text(i).replace(/\s+/g, " ").includes(question.phrase)) scores[i] = (scores[i] ?? 0) + 2 * most;
    }
  }
  return { scores, most };
}

/** Indexes of the highest scores above 0, the highest first. */
export function topOf(scores: Float64Array, most: number): number[] {
  const found: number[] = [];
  for (const [i, score] of scores.entries()) if (score > 0) found.push(i);
  return found.toSorted((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b).slice(0, most);
}
