import type { JsonValue } from "../../core/json.ts";
import { type Elsewhere, type JsonNode, jsonNode } from "./json-nodes.ts";
import { type Above, askedFor, createAsks, keyOf, type NamedValue } from "./leaf-question.ts";
import { type Outline, type OutlineLeaf, outline } from "./outline.ts";
import type { Question } from "./question.ts";
import { dullness, isScalar, type Scalar, telling, valueText } from "./scalar-text.ts";
import type { Work } from "./work.ts";

/** Most leaves that are weighed. */
const MAX_LEAVES = 6_000;

/** An outline of a JSON value, and how many values there are. */
export interface JsonOutline extends Outline {
  readonly total: number;
}

/** What an outline of JSON depends on. */
export interface TreeOptions {
  readonly budget: number;
  readonly question: Question;
  readonly elsewhere: Elsewhere;
}

/** The fields of a value that are worth most for their length, as nested names. */
export function* jsonTree(value: JsonValue, options: TreeOptions): Work<JsonOutline> {
  const found: NamedValue[] = [];
  const { elsewhere } = options;
  collect(
    jsonNode(value, { elsewhere, asks: createAsks(options.question) }),
    undefined,
    { path: [], aliases: [] },
    found,
  );
  yield;
  const scores = yield* weigh(found, options.question);
  const few = foremost(found, scores, Math.max(FEWEST, Math.floor(options.budget / LEAST_COST)));
  let made = outline(yield* outlineLeaves(few.found, few.scores, options), options.budget);
  for (let wider = WIDER; made.kept === found.length && wider <= WIDEST; wider *= WIDER) {
    yield;
    // All stand in it: what room is left is for longer texts.
    const next = outline(yield* outlineLeaves(found, scores, { ...options, wider }), options.budget);
    if (next.kept < made.kept || next.text === made.text) break;
    made = next;
  }
  yield;
  return { ...made, total: found.reduce((sum, { each }) => sum + (each?.length ?? 1), 0) };
}

/** How much the worth of a leaf grows with the items it tells of: it costs more too, and each of them says less. */
const MORE = 0.35;

/** A leaf takes more than twice as many characters, so that those beyond could stand in no outline. */
const LEAST_COST = 2;
const FEWEST = 500;

interface Weighed {
  readonly found: readonly NamedValue[];
  readonly scores: Float64Array;
}

/** The `most` leaves with the highest scores, in their order. */
function foremost(found: readonly NamedValue[], scores: Float64Array, most: number): Weighed {
  if (found.length <= most) return { found, scores };
  const least = scores.toSorted()[found.length - most] ?? 0;
  const kept = found.flatMap((_, i) => ((scores[i] ?? 0) >= least ? [i] : []));
  return { found: kept.flatMap((i) => found[i] ?? []), scores: Float64Array.from(kept, (i) => scores[i] ?? 0) };
}

/** How much wider leaves become at a time where all have room, and at most. */
const WIDER = 2;
const WIDEST = 64;

interface LeafOptions extends TreeOptions {
  /** How often as wide as usual. */
  readonly wider?: number;
}

function* outlineLeaves(found: readonly NamedValue[], scores: Float64Array, options: LeafOptions): Work<OutlineLeaf[]> {
  const leaves: OutlineLeaf[] = [];
  for (const [i, leaf] of found.entries()) {
    leaves.push(outlineLeaf(leaf, scores[i] ?? 0, options));
    if (i % 500 === 0) yield;
  }
  return leaves;
}

function outlineLeaf(leaf: NamedValue, score: number, { budget, question, wider = 1 }: LeafOptions): OutlineLeaf {
  const usual = Math.max(16, Math.min(score > 4 ? 240 : 90, Math.floor(budget / 4)));
  const width = Math.min(usual * wider, Math.max(usual, budget));
  const path = leaf.path.length === 0 ? ["value"] : leaf.path;
  return { path, score, text: leaf.note ?? valueText(leaf.value, width, question), says: leaf.each?.length ?? 1 };
}

function collect(node: JsonNode, label: string | undefined, above: Above, found: NamedValue[]): void {
  if (found.length >= MAX_LEAVES) return;
  const path = label === undefined ? above.path : [...above.path, label];
  if (node.type === "leaf") {
    found.push({ path, above, value: node.value, note: node.note, each: node.each });
    return;
  }
  const here = {
    path,
    aliases: node.aliases.length === 0 ? above.aliases : [...above.aliases, ...node.aliases.flat()],
  };
  for (const [name, child] of node.entries) collect(child, name, here, found);
}

/** The worth of each leaf: shallow, telling, short and new; above all what the question names. */
function* weigh(found: readonly NamedValue[], question: Question): Work<Float64Array> {
  const scores = yield* askedFor(found, question);
  const isNew = createIsNew();
  const names = new Map<string, number>();
  for (const [i, leaf] of found.entries()) {
    if (i % 1_000 === 999) yield;
    const key = keyOf(leaf.path);
    const told = names.get(key) ?? telling(key);
    names.set(key, told);
    const score = told + placeWorth(leaf.path) - dullnessOf(leaf) - (isNew(key, leaf) ? 0 : AGAIN) + (scores[i] ?? 0);
    // What tells of several costs more, and says as much more.
    scores[i] = score < 0 ? score : score * (leaf.each?.length ?? 1) ** MORE;
  }
  return scores;
}

/** What a leaf is worth less that says by the same name what another one said. */
const AGAIN = 2.5;

function createIsNew(): (key: string, leaf: NamedValue) => boolean {
  const seen = new Map<string, Set<Scalar>>();
  return (key, { note, value }) => {
    const before = seen.get(key) ?? new Set();
    seen.set(key, before);
    const { size } = before;
    return before.add(note ?? (isScalar(value) ? value : "")).size > size;
  };
}

/** What stands high up, and early in its lists, comes first. */
function placeWorth(path: readonly string[]): number {
  let worth = 4 - 0.8 * (path.length - 1);
  for (const label of path) if (label.startsWith("[")) worth -= Math.min(3, 0.4 * indexOf(label));
  return worth;
}

function dullnessOf({ value, each }: NamedValue): number {
  return each === undefined ? dullness(value) : Math.min(...each.map(dullness));
}

function indexOf(label: string): number {
  const index = /^\[(\d+)\]$/.exec(label)?.[1];
  return index === undefined ? 0 : Number(index);
}
