import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, stringifyJson } from "../../core/json.ts";
import { isScalar, type Scalar, scalarText } from "./scalar-text.ts";

/** A value that is not taken apart further. */
export interface LeafNode {
  readonly type: "leaf";
  readonly value: JsonValue;
  /** Text that stands for the value. Absent: the value itself. */
  readonly note?: string;
  /** Of a leaf that tells of several items: the value of each; `value` is the list of them. */
  readonly each?: readonly Scalar[];
}

/** An object, or a list that holds objects. */
export interface BranchNode {
  readonly type: "branch";
  readonly entries: Map<string, JsonNode>;
  /** Other places, by their labels, that hold an equal object. */
  readonly aliases: (readonly string[])[];
}

/** JSON as it is summarised. */
export type JsonNode = LeafNode | BranchNode;

/** Most items of one list that are looked at one by one. */
const MAX_ITEMS = 64;

/** Objects with fewer fields are written again where they stand twice. */
const LEAST_FIELDS = 3;

/** Objects that hold more values are not looked for a second time. */
const MOST_VALUES = 200;

/** Fields of an object that tell it from most others. */
const LOOKED_AT = 4;

/** Objects that look alike and differ; further ones are not looked for a second time. */
const MOST_ALIKE = 8;

/** Fewest values that are shown of each thing that stands too deep. */
const LEAST_SHARE = 4;

/** About how many values are taken apart; deeper ones stand as how many there are, but for those that are asked for. */
const MAX_VALUES = 4_000;

/** The label of what all items of a list have in common. */
const EACH = "[*]";

/** Stands between the values of several items. */
const BESIDE = " | ";

/** A list of at most so many items has its short values side by side, each name once. */
const MOST_BESIDE = 8;

/** Longest value that stands beside others, and most characters of all of them. */
const BESIDE_WIDTH = 40;
const BESIDE_WIDTHS = 200;

/** Gives the text that stands for a value, where it is told of elsewhere. */
export type Elsewhere = (value: JsonValue) => string | undefined;

/**
 * The value as nested names. Items of a list are told apart by what differs, and what all have in common stands once,
 * under {@link EACH}; an object that stands twice within an item is named the second time.
 */
export function jsonNode(value: JsonValue, { elsewhere, asks }: NodeOptions): JsonNode {
  return build(value, { elsewhere, asks, ...reachWithin(value, MAX_VALUES), seen: new Map(), path: [] });
}

/** What the outline of a value depends on. */
export interface NodeOptions {
  readonly elsewhere: Elsewhere;
  /** Whether a value, by its name, is asked for however deep it stands. Absent: nothing is. */
  readonly asks?: ((name: string, value: JsonValue) => boolean) | undefined;
}

/** How deep a value is looked into. */
interface Reach {
  /** Down to where it holds about so many others. */
  readonly depth: number;
  /** Most values below that are shown of each thing there, so that all of them have their share. */
  readonly share: number;
}

function reachWithin(value: JsonValue, most: number): Reach {
  let depth = 0;
  let count = 0;
  let level: readonly JsonValue[] = [value];
  while (level.length > 0 && count <= most) {
    const next: JsonValue[] = [];
    for (const item of level) {
      if (isJsonArray(item)) for (const i of spread(item.length, MAX_ITEMS)) next.push(item[i] ?? null);
      else if (isJsonObject(item)) next.push(...Object.values(item).slice(0, most));
    }
    count += next.length;
    level = next;
    depth++;
  }
  const share = Math.max(LEAST_SHARE, Math.min(MAX_ITEMS, Math.floor(most / Math.max(1, level.length))));
  return { depth: Math.max(2, level.length === 0 ? depth : depth - 1), share };
}

/** An object that may stand once more. */
interface Seen {
  readonly object: JsonObject;
  readonly path: readonly string[];
  readonly node: BranchNode;
  /** Its JSON text, once it was needed. */
  text: string | undefined;
}

/** Of which `depth` is how much deeper values are taken apart. */
interface Scope extends NodeOptions, Reach {
  /** Objects of the item that the walk is in, by what they look like from outside. */
  readonly seen: Map<string, Seen[]>;
  readonly path: readonly string[];
}

function build(value: JsonValue, scope: Scope): JsonNode {
  if (isScalar(value)) return { type: "leaf", value };
  const note = scope.elsewhere(value);
  if (note !== undefined) return { type: "leaf", value, note };
  if (scope.depth <= 0) return beyond(value, scope);
  if (isJsonArray(value)) return value.every(isScalar) ? { type: "leaf", value } : buildList(value, scope);
  return isJsonObject(value) ? buildObject(value, scope) : { type: "leaf", value };
}

function buildObject(object: JsonObject, scope: Scope): JsonNode {
  const names = Object.keys(object);
  const node: BranchNode = { type: "branch", entries: new Map(), aliases: [] };
  if (names.length >= LEAST_FIELDS && scope.path.length > 0 && isSmall(object)) {
    const first = seenBefore(object, node, scope);
    if (first !== undefined) {
      first.node.aliases.push(scope.path);
      return { type: "leaf", value: object, note: `same as ${first.path.join(".")}` };
    }
  }
  for (const name of names) {
    const item = object[name];
    if (item !== undefined)
      node.entries.set(name, build(item, { ...scope, depth: scope.depth - 1, path: [...scope.path, name] }));
  }
  return node;
}

/** The first object that is equal; `undefined`: there is none, and this one is kept. */
function seenBefore(object: JsonObject, node: BranchNode, { seen, path }: Scope): Seen | undefined {
  const look = lookOf(object);
  const alike = seen.get(look);
  if (alike === undefined) {
    seen.set(look, [{ object, path, node, text: undefined }]);
    return undefined;
  }
  const text = stringifyJson(object);
  const first = alike.find((other) => (other.text ??= stringifyJson(other.object)) === text);
  if (first === undefined && alike.length < MOST_ALIKE) alike.push({ object, path, node, text });
  return first;
}

/** Equal for equal objects, and quick to tell: how many names, and what comes first in it. */
function lookOf(object: JsonObject): string {
  const names = Object.keys(object);
  let look = String(names.length);
  for (const name of names.slice(0, LOOKED_AT)) look += `,${name}:${firstOf(object[name])}`;
  return look;
}

/** The first scalar in a value. */
function firstOf(value: JsonValue | undefined): string {
  let at = value;
  while (at !== undefined && !isScalar(at)) at = isJsonArray(at) ? at[0] : Object.values(at)[0];
  return String(at);
}

function buildList(list: readonly JsonValue[], scope: Scope): JsonNode {
  const picked = spread(list.length, MAX_ITEMS);
  const items = picked.map((i) =>
    build(list[i] ?? null, { ...scope, depth: scope.depth - 1, seen: new Map(), path: [] }),
  );
  const { common, beside, rest } = split(items);
  const entries = new Map<string, JsonNode>();
  if (common !== undefined) entries.set(EACH, common);
  if (beside !== undefined) entries.set(items.map((_, i) => `[${i}]`).join(BESIDE), beside);
  for (const [i, node] of rest.entries()) if (node !== undefined) entries.set(`[${picked[i] ?? i}]`, node);
  if (picked.length < list.length) {
    entries.set("…", { type: "leaf", value: null, note: `${list.length} items` });
    // Not all were looked at, so nothing can be said of all.
    if (common !== undefined) return buildApart(items, picked, entries);
  }
  return { type: "branch", entries, aliases: [] };
}

function buildApart(items: readonly JsonNode[], picked: readonly number[], all: Map<string, JsonNode>): BranchNode {
  const entries = new Map(items.map((node, i): [string, JsonNode] => [`[${picked[i] ?? i}]`, node]));
  const count = all.get("…");
  if (count !== undefined) entries.set("…", count);
  return { type: "branch", entries, aliases: [] };
}

/** Indexes of at most `most` of `count` things, evenly spread, the first and the last among them. */
export function spread(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  if (most < 2) return most < 1 ? [] : [0];
  return Array.from({ length: most }, (_, i) => Math.round((i * (count - 1)) / (most - 1)));
}

function isSmall(object: JsonObject): boolean {
  let left = MOST_VALUES;
  const count = (value: JsonValue): void => {
    if (--left < 0 || isScalar(value)) return;
    for (const item of isJsonArray(value) ? value : Object.values(value)) {
      count(item);
      if (left < 0) return;
    }
  };
  count(object);
  return left >= 0;
}

/** What stands deeper than is looked: how many there are, and of it what is asked for. */
function beyond(value: JsonValue, { asks, share }: Scope): JsonNode {
  if (asks === undefined) return { type: "leaf", value };
  const entries = new Map<string, JsonNode>();
  let left = share;
  const look = (part: JsonValue, path: string): void => {
    if (isScalar(part)) return;
    for (const [name, item] of isJsonArray(part) ? part.entries() : Object.entries(part)) {
      if (left <= 0) return;
      const isAsked = isScalar(item) && asks(String(name), item);
      if (isScalar(item) && !isAsked) continue;
      const label = typeof name === "number" ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
      if (isAsked) {
        left--;
        entries.set(label, { type: "leaf", value: item });
      } else look(item, label);
    }
  };
  look(value, "");
  return entries.size === 0 ? { type: "leaf", value } : { type: "branch", entries, aliases: [] };
}

interface Split {
  readonly common: JsonNode | undefined;
  /** What differs and is short, the values of all nodes side by side. */
  readonly beside: JsonNode | undefined;
  readonly rest: readonly (JsonNode | undefined)[];
}

/** What all nodes have in common, what can stand side by side, and what is left of each. */
function split(nodes: readonly JsonNode[]): Split {
  const [first] = nodes;
  if (first === undefined || nodes.length < 2) return { common: undefined, beside: undefined, rest: nodes };
  const leaves = nodes.filter((node) => node.type === "leaf");
  const branches = nodes.filter((node) => node.type === "branch");
  if (branches.length === nodes.length) return splitBranches(branches);
  if (first.type !== "leaf" || leaves.length < nodes.length)
    return { common: undefined, beside: undefined, rest: nodes };
  const rest = nodes.map(() => undefined);
  if (leaves.every((leaf) => sameLeaf(leaf, first))) return { common: first, beside: undefined, rest };
  const beside = besideEachOther(leaves);
  return { common: undefined, beside, rest: beside === undefined ? nodes : rest };
}

/** One leaf for several; `undefined`: they are too many, or too long. */
function besideEachOther(leaves: readonly LeafNode[]): LeafNode | undefined {
  if (leaves.length > MOST_BESIDE) return undefined;
  const each: Scalar[] = [];
  for (const { value, note } of leaves) {
    if (note !== undefined || !isScalar(value) || (typeof value === "string" && value.length > BESIDE_WIDTH)) {
      return undefined;
    }
    each.push(value);
  }
  const texts = each.map((value) => scalarText(value, 2 * BESIDE_WIDTH));
  const note = texts.map((text, i) => (text.includes("|") ? JSON.stringify(each[i]) : text)).join(BESIDE);
  return note.length > BESIDE_WIDTHS ? undefined : { type: "leaf", value: each, note, each };
}

function splitBranches(nodes: readonly BranchNode[]): Split {
  const common = new Map<string, JsonNode>();
  const beside = new Map<string, JsonNode>();
  const rest = nodes.map(() => new Map<string, JsonNode>());
  const names = new Set(nodes.flatMap((node) => [...node.entries.keys()]));
  for (const name of names) {
    const fields = nodes.map((node) => node.entries.get(name));
    const whole = fields.filter((field) => field !== undefined);
    const inner: Split =
      whole.length === nodes.length ? split(whole) : { common: undefined, beside: undefined, rest: fields };
    if (inner.common !== undefined) common.set(name, inner.common);
    if (inner.beside !== undefined) beside.set(name, inner.beside);
    for (const [i, left] of inner.rest.entries()) if (left !== undefined) rest[i]?.set(name, left);
  }
  const branchOf = (entries: Map<string, JsonNode>, node: BranchNode | undefined): BranchNode | undefined =>
    entries.size === 0 ? undefined : { type: "branch", entries, aliases: node?.aliases ?? [] };
  return {
    common: branchOf(common, nodes[0]),
    beside: branchOf(beside, nodes[0]),
    rest: rest.map((entries, i) => branchOf(entries, nodes[i])),
  };
}

function sameLeaf(a: LeafNode, b: LeafNode): boolean {
  if (a.note !== undefined || b.note !== undefined) return a.note === b.note;
  if (a.value === b.value) return true;
  if (typeof a.value !== "object" || typeof b.value !== "object") return false;
  return stringifyJson(a.value) === stringifyJson(b.value);
}
