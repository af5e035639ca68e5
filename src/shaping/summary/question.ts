/** What a summary should say something about. */
export interface Question {
  /** Most telling first; empty: nothing is asked. */
  readonly terms: readonly Term[];
  /** The whole of it, lower case, spaces single: what is asked for may be quoted. Empty: too short to tell. */
  readonly phrase: string;
}

/** One word of a question. */
export interface Term {
  /** Lower case, an ending `s` taken off. */
  readonly text: string;
  /** How much it tells by its form; 1 for a plain word. */
  readonly weight: number;
}

/** Most characters of a question that count. */
const MAX_QUESTION = 2_000;

/** Most words of a question that count. */
const MAX_TERMS = 32;

/** Words that say how something is asked, and not what. */
const STOP_WORDS = new Set(
  (
    "the a an of is are was were be been what which who whose when where why how many much in on at to for and or with by from " +
    "as it its this that these those there any all each every show me give list find get tell please do does did has have had " +
    "can could would should will i my we our you your they their than then if not no"
  ).split(" "),
);

/** No question. */
export const NO_QUESTION: Question = { terms: [], phrase: "" };

/** Fewest characters that tell as a whole. */
const MIN_PHRASE = 8;

/** Words of a question: names such as `order-17` or `user.login` count whole and in their parts. */
export function parseQuestion(text: string): Question {
  const terms = new Map<string, number>();
  const add = (word: string, weight: number): void => {
    const term = stem(word.toLowerCase());
    if (STOP_WORDS.has(term) || (term.length < 2 && !/[\p{N}\p{Script=Han}]/u.test(term))) return;
    terms.set(term, Math.max(terms.get(term) ?? 0, weight));
  };
  for (const [word] of text.slice(0, MAX_QUESTION).matchAll(/[\p{L}\p{N}_]+(?:[.:@/+-]+[\p{L}\p{N}_]+)*/gu)) {
    const parts = wordParts(word);
    if (parts.length > 1) add(word, 2);
    for (const part of parts) add(part, 1);
    for (const pair of hanPairs(word)) add(pair, 1);
  }
  const best = [...terms].toSorted((a, b) => b[1] - a[1]).slice(0, MAX_TERMS);
  const phrase = text.slice(0, MAX_QUESTION).trim().toLowerCase().replace(/\s+/g, " ");
  return {
    terms: best.map(([term, weight]) => ({ text: term, weight })),
    phrase: phrase.length < MIN_PHRASE || best.length < 2 ? "" : phrase,
  };
}

/** The words a name is made of: `userLogin_count` is `user`, `Login`, `count`. */
export function wordParts(name: string): string[] {
  return name.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+|[^\p{L}\p{N}\s_.:@/+-]+|[\p{Lo}\p{M}]+/gu) ?? [];
}

/** How well a term stands in a lower-case text: 1 as a word, less inside of one, 0 nowhere. */
export function matchOf(lower: string, term: Term): number {
  let best = 0;
  for (let at = lower.indexOf(term.text); at >= 0; at = lower.indexOf(term.text, at + 1)) {
    best = Math.max(best, matchAt(lower, at, term));
    if (best === 1) break;
  }
  return best;
}

/** How well a term stands at a place of a lower-case text that holds it: 1 as a word, less inside of one. */
export function matchAt(lower: string, at: number, { text }: Term): number {
  const end = at + text.length;
  const last = lower.charCodeAt(end) === 115 ? end + 1 : end;
  if (isEdge(lower, at) && (isEdge(lower, end) || isEdge(lower, last))) return 1;
  return text.length >= 4 && !/^\d/.test(text) ? 0.4 : 0;
}

/** Where in a text the first of the terms stands; -1: nowhere. */
export function firstHit(text: string, { terms }: Question): number {
  if (terms.length === 0) return -1;
  const lower = text.toLowerCase();
  const hit = terms.find((term) => matchOf(lower, term) === 1) ?? terms.find((term) => matchOf(lower, term) > 0);
  return hit === undefined || lower.length !== text.length ? -1 : lower.indexOf(hit.text);
}

function stem(word: string): string {
  return word.length > 3 && word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word;
}

/** Chinese is written without spaces: two signs that stand together are as good as a word. */
function hanPairs(word: string): string[] {
  return (word.match(/\p{Script=Han}{3,}/gu) ?? []).flatMap((run) =>
    Array.from({ length: run.length - 1 }, (_, i) => run.slice(i, i + 2)),
  );
}

/** Whether a word begins or ends before this index. Signs beyond Latin letters stand alone often enough. */
function isEdge(text: string, index: number): boolean {
  return !isWord(text.charCodeAt(index)) || !isWord(text.charCodeAt(index - 1));
}

function isWord(unit: number): boolean {
  return (unit >= 48 && unit <= 57) || (unit >= 97 && unit <= 122) || (unit >= 0xdf && unit < 0x2e80);
}
