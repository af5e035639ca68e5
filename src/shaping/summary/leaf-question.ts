import type { JsonValue } from "../../core/json.ts";
import { matchOf, type Question, type Term, wordParts } from "./question.ts";
import { isScalar, type Scalar, scalarText } from "./scalar-text.ts";
import type { Work } from "./work.ts";

/** What holds values: the names that lead to it, and other names that lead to an equal one. */
export interface Above {
  readonly path: readonly string[];
  readonly aliases: readonly string[];
}

/** A value with the names that lead to it. */
export interface NamedValue {
  readonly path: readonly string[];
  /** The same for all values that one thing holds. */
  readonly above: Above;
  readonly value: JsonValue;
  /** Text that stands for the value. `undefined`: the value itself. */
  readonly note: string | undefined;
  /** The values of several items, where it tells of them. */
  readonly each: readonly Scalar[] | undefined;
}

/** How much a term counts in a value's own name, in a name above it, and in the value, the rarer the more. */
const IN_KEY = 1.5;
const IN_PATH = 0.7;
const RARE = 2;

/** What a value is worth that holds all that is asked for. */
const MOST = 9;

/** Characters of a value that are looked at. */
const MAX_VALUE = 2_000;

/** Characters of a value, and words of a question, that tell whether a value deep inside is asked for. */
const DEEP_VALUE = 500;
const FOREMOST = 6;

/** How well a name or a value holds each term of a question; shared where it holds none. */
type Matches = readonly number[];

/** Whether the most telling words of a question stand in a name or a value; `undefined`: nothing is asked. */
export function createAsks({ terms }: Question): ((name: string, value: JsonValue) => boolean) | undefined {
  if (terms.length === 0) return undefined;
  const foremost = terms.slice(0, FOREMOST);
  const any = anyOf(foremost);
  const names = new Map<string, boolean>();
  const stands = (text: string): boolean => {
    if (!any.test(text)) return false;
    const lower = text.toLowerCase();
    return foremost.some((term) => matchOf(lower, term) === 1);
  };
  return (name, value) => {
    let named = names.get(name);
    if (named === undefined) names.set(name, (named = stands(name)));
    return named || (isScalar(value) && stands(startOf(value, DEEP_VALUE)));
  };
}

/** Where the terms of a question stand around one value; `undefined`: nowhere. */
interface LeafMatches {
  readonly key: Matches | undefined;
  readonly path: Matches | undefined;
  readonly value: Matches | undefined;
}

/** How much a question asks for each value: by its own name, by the names above it, by what it is. */
export function* askedFor(found: readonly NamedValue[], { terms }: Question): Work<Float64Array> {
  const scores = new Float64Array(found.length);
  if (terms.length === 0) return scores;
  const leaves = yield* matchLeaves(found, terms);
  const total = terms.reduce((sum, { weight }) => sum + weight, 0);
  for (const [t, { weight }] of terms.entries()) {
    addTerm(scores, leaves, t, (MOST * weight) / total);
    yield;
  }
  return scores;
}

/** Adds what one term is worth to each value. */
function addTerm(scores: Float64Array, leaves: readonly LeafMatches[], t: number, weight: number): void {
  const at = (matches: Matches | undefined): number => matches?.[t] ?? 0;
  let count = 0;
  for (const { key, value } of leaves) if (at(key) + at(value) > 0) count++;
  const rarity = count === 0 ? 0 : Math.log(1 + leaves.length / count) / Math.log(1 + leaves.length);
  for (const [i, { key, path, value }] of leaves.entries()) {
    const score = at(key) * IN_KEY + at(path) * IN_PATH + at(value) * (1 + RARE * rarity);
    if (score > 0) scores[i] = (scores[i] ?? 0) + weight * score;
  }
}

function* matchLeaves(found: readonly NamedValue[], terms: readonly Term[]): Work<LeafMatches[]> {
  const find = createFind(terms);
  const names = createNames(terms);
  const leaves: LeafMatches[] = [];
  let above: Above | undefined;
  let path: Matches | undefined;
  for (const leaf of found) {
    if (leaf.above !== above) {
      above = leaf.above;
      path = bestOf([...above.path, ...above.aliases], names);
    }
    const value = find(saidBy(leaf));
    if (leaves.push({ key: names(keyOf(leaf.path)), path, value }) % 1_000 === 0) yield;
  }
  return leaves;
}

/** Finds terms in texts, `undefined` where none of them stands: most texts hold none, which one look tells. */
function createFind(terms: readonly Term[]): (text: string) => Matches | undefined {
  const any = anyOf(terms);
  return (text) => (any.test(text) ? matchesOf(text.toLowerCase(), terms) : undefined);
}

function anyOf(terms: readonly Term[]): RegExp {
  return new RegExp(terms.map(({ text }) => text.replace(/[^\p{L}\p{N}_]/gu, "\\$&")).join("|"), "i");
}

function matchesOf(lower: string, terms: readonly Term[]): Matches | undefined {
  const matches: number[] = [];
  let some = false;
  for (const term of terms) {
    const match = matchOf(lower, term);
    some ||= match > 0;
    matches.push(match);
  }
  return some ? matches : undefined;
}

/** Finds terms in names, as they are written and as words, each name once. */
function createNames(terms: readonly Term[]): (name: string) => Matches | undefined {
  const known = new Map<string, Matches | undefined>();
  return (name) => {
    if (known.has(name)) return known.get(name);
    const matches = matchesOf(`${name} ${wordParts(name).join(" ")}`.toLowerCase(), terms);
    known.set(name, matches);
    return matches;
  };
}

/** The best matches of several names. */
function bestOf(path: readonly string[], names: (name: string) => Matches | undefined): Matches | undefined {
  let best: Matches | undefined;
  for (const name of path) {
    const matches = names(name);
    if (matches === undefined || matches === best) continue;
    const known: Matches | undefined = best;
    best = known === undefined ? matches : matches.map((match, t) => Math.max(match, known[t] ?? 0));
  }
  return best;
}

/** The value of a leaf, or of each item that it tells of, as text; empty: something stands for it. */
function saidBy({ value, note, each }: NamedValue): string {
  if (each !== undefined) return each.map((one) => startOf(one, MAX_VALUE)).join("\n");
  return note === undefined && isScalar(value) ? startOf(value, MAX_VALUE) : "";
}

function startOf(value: Scalar, most: number): string {
  return typeof value === "string" ? value.slice(0, most) : scalarText(value, most);
}

/** The last name of a path that is not the place in a list. */
export function keyOf(path: readonly string[]): string {
  return path.findLast((label) => !label.startsWith("[")) ?? "";
}
