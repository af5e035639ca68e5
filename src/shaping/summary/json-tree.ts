import type { JsonValue } from "../../core/json.ts";
import { type Elsewhere, type JsonNode, jsonNode } from "./json-nodes.ts";
import { type Outline, type OutlineLeaf, outline } from "./outline.ts";
import { matchOf, type Question, wordParts } from "./question.ts";
import { dullness, isScalar, type Scalar, scalarText, telling, valueText } from "./scalar-text.ts";
import type { Work } from "./work.ts";

/** Most leaves that are weighed. */
const MAX_LEAVES = 6_000;

/** An outline of a JSON value, with how much of it that is. */
export interface JsonOutline extends Outline {
  readonly total: number;
}

/** What an outline of JSON depends on. */
export interface TreeOptions {
  readonly budget: number;
  readonly question: Question;
  readonly elsewhere: Elsewhere;
}

interface Found {
  readonly path: readonly string[];
  readonly aliases: readonly string[];
  readonly value: JsonValue;
  readonly note: string | undefined;
}

/** The fields of a value that are worth most for their length, as nested names. */
export function* jsonTree(value: JsonValue, options: TreeOptions): Work<JsonOutline> {
  const found: Found[] = [];
  const { elsewhere } = options;
  collect(jsonNode(value, { elsewhere, asks: createAsks(options.question) }), { path: [], aliases: [] }, found);
  yield;
  const weigh = createWeigh(found, options.question);
  const scores: number[] = [];
  for (const leaf of found) {
    scores.push(weigh(leaf));
    if (scores.length % 500 === 0) yield;
  }
  let made = outline(yield* outlineLeaves(found, scores, options), options.budget);
  for (let wider = WIDER; made.kept === found.length && wider <= WIDEST; wider *= WIDER) {
    yield;
    // All stand in it: what room is left is for longer texts.
    const next = outline(yield* outlineLeaves(found, scores, { ...options, wider }), options.budget);
    if (next.kept < made.kept || next.text === made.text) break;
    made = next;
  }
  yield;
  return { ...made, total: found.length };
}

/** Whether the most telling words of a question stand in a name or a value. */
function createAsks({ terms }: Question): ((name: string, value: JsonValue) => boolean) | undefined {
  if (terms.length === 0) return undefined;
  const foremost = terms.slice(0, 6);
  // Most texts hold none of the words, and this tells so without a copy in lower case.
  const any = new RegExp(foremost.map(({ text }) => text.replace(/[^\p{L}\p{N}_]/gu, "\\$&")).join("|"), "i");
  const stands = (text: string): boolean => {
    if (!any.test(text)) return false;
    const lower = text.toLowerCase();
    return foremost.some((term) => matchOf(lower, term) === 1);
  };
  return (name, value) => stands(name) || (isScalar(value) && stands(scalarStart(value)));
}

function scalarStart(value: Scalar): string {
  return typeof value === "string" ? value.slice(0, 500) : scalarText(value, 500);
}

/** How much wider leaves become at a time where all have room, and at most. */
const WIDER = 2;
const WIDEST = 64;

interface LeafOptions extends TreeOptions {
  /** How often as wide as usual. */
  readonly wider?: number;
}

function* outlineLeaves(found: readonly Found[], scores: readonly number[], options: LeafOptions): Work<OutlineLeaf[]> {
  const leaves: OutlineLeaf[] = [];
  for (const [i, leaf] of found.entries()) {
    leaves.push(outlineLeaf(leaf, scores[i] ?? 0, options));
    if (i % 500 === 0) yield;
  }
  return leaves;
}

function outlineLeaf(leaf: Found, score: number, { budget, question, wider = 1 }: LeafOptions): OutlineLeaf {
  const usual = Math.max(16, Math.min(score > 4 ? 240 : 90, Math.floor(budget / 4)));
  const width = Math.min(usual * wider, Math.max(usual, budget));
  const path = leaf.path.length === 0 ? ["value"] : leaf.path;
  return { path, score, text: leaf.note ?? valueText(leaf.value, width, question) };
}

function collect(node: JsonNode, at: { path: string[]; aliases: string[] }, found: Found[]): void {
  if (found.length >= MAX_LEAVES) return;
  if (node.type === "leaf") {
    found.push({ ...at, value: node.value, note: node.note });
    return;
  }
  const aliases = node.aliases.length === 0 ? at.aliases : [...at.aliases, ...node.aliases.flat()];
  for (const [label, child] of node.entries) collect(child, { path: [...at.path, label], aliases }, found);
}

/** The worth of a leaf: shallow, telling, short and new; above all what the question names. */
function createWeigh(found: readonly Found[], question: Question): (leaf: Found) => number {
  const seen = new Map<string, number>();
  const ask = createAsk(found, question);
  return (leaf) => {
    const key = keyOf(leaf.path);
    const depth = leaf.path.length - 1;
    let score = 4 - 0.8 * depth;
    score += telling(key);
    score -= dullness(leaf.value);
    for (const label of leaf.path) score -= Math.min(3, 0.4 * indexOf(label));
    const again = `${key}\u0000${leaf.note ?? (isScalar(leaf.value) ? String(leaf.value) : "")}`;
    const times = seen.get(again) ?? 0;
    seen.set(again, times + 1);
    if (times > 0) score -= 2.5;
    return score + ask(leaf);
  };
}

/** How much a question asks for a leaf: by its own name, by the names above it, by its value. */
function createAsk(found: readonly Found[], { terms }: Question): (leaf: Found) => number {
  if (terms.length === 0) return () => 0;
  const known = new Map<string, string>();
  const nameText = (names: readonly string[]): string => names.map((name) => wordsOf(name, known)).join(" ");
  const texts = found.map((leaf) => ({ key: nameText([keyOf(leaf.path)]), value: valueLower(leaf) }));
  const total = terms.reduce((sum, term) => sum + term.weight, 0);
  const rarity = terms.map((term) => {
    const hits = texts.reduce(
      (sum, { key, value }) => sum + (matchOf(key, term) + matchOf(value, term) > 0 ? 1 : 0),
      0,
    );
    return hits === 0 ? 0 : Math.log(1 + found.length / hits) / Math.log(1 + found.length);
  });
  return (leaf) => {
    const key = nameText([keyOf(leaf.path)]);
    const path = nameText([...leaf.path.slice(0, -1), ...leaf.aliases]);
    const value = valueLower(leaf);
    let sum = 0;
    for (const [i, term] of terms.entries()) {
      const named = matchOf(key, term) * 1.5 + matchOf(path, term) * 0.7;
      sum += term.weight * (named + matchOf(value, term) * (1 + 2 * (rarity[i] ?? 0)));
    }
    return (sum / total) * 9;
  };
}

function valueLower({ value, note }: Found): string {
  return note === undefined && isScalar(value) ? scalarText(value, 2_000).toLowerCase() : "";
}

/** A name in lower case, as it is written and as words. */
function wordsOf(name: string, known: Map<string, string>): string {
  const words = known.get(name) ?? `${name} ${wordParts(name).join(" ")}`.toLowerCase();
  known.set(name, words);
  return words;
}

function keyOf(path: readonly string[]): string {
  return path.findLast((label) => !label.startsWith("[")) ?? "";
}

function indexOf(label: string): number {
  const index = /^\[(\d+)\]$/.exec(label)?.[1];
  return index === undefined ? 0 : Number(index);
}
