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
    const all = texts.join("\n");
    const lower = all.toLowerCase();
    // A few letters have a lower case of another length: then each text is its own.
    const lengths = lower.length === all.length ? texts : texts.map((text) => text.toLowerCase());
    this.#all = lower;
    this.#starts = new Float64Array(texts.length + 1);
    let at = 0;
    for (let i = 0; i < lengths.length; i++) {
      this.#starts[i] = at;
      at += (lengths[i] ?? "").length + 1;
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

  /** Tells of each text that holds the term how well: 2 as the whole text, 1 as a word, less inside of one. */
  visit(term: Term, each: (index: number, match: number) => void): void {
    let index = 0;
    let best = 0;
    let at = this.#all.indexOf(term.text);
    while (at >= 0) {
      const here = this.#textAt(at, index);
      if (here !== index && best > 0) {
        each(index, best);
        best = 0;
      }
      index = here;
      best = Math.max(best, this.#isWhole(at, term, index) ? 2 : matchAt(this.#all, at, term));
      at = this.#all.indexOf(term.text, best >= 1 ? this.#start(index + 1) : at + 1);
    }
    if (best > 0) each(index, best);
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

interface Match {
  readonly text: number;
  readonly match: number;
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
    const found: Match[] = [];
    index.visit(term, (text, match) => found.push({ text, match }));
    yield;
    if (found.length === 0 || (index.size > FEW && found.length > index.size * common)) continue;
    const weight = (term.weight * Math.log(1 + index.size / found.length)) / scale;
    most += weight;
    for (const { text, match } of found) scores[text] = (scores[text] ?? 0) + match * weight;
  }
  for (const i of most > 0 && question.phrase !== "" ? topOf(scores, BEST) : []) {
    if (quotes(index.text(i), question)) scores[i] = (scores[i] ?? 0) + 2 * most;
  }
  return { scores, most };
}

function quotes(text: string, { phrase }: Question): boolean {
  return text.replace(/\s+/g, " ").includes(phrase);
}

/** Indexes of the highest scores above 0, the highest first. */
export function topOf(scores: Float64Array, most: number): number[] {
  const found: number[] = [];
  for (const [i, score] of scores.entries()) if (score > 0) found.push(i);
  return found.toSorted((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b).slice(0, most);
}
