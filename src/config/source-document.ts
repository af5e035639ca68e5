import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject, pointerSteps } from "../core/json.ts";

/** A place in a text, 1-based; columns count UTF-16 code units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Something wrong at a place of a text. */
export interface SourceProblem extends Position {
  /** One line: what is wrong, what was got, the mend. */
  readonly message: string;
}

/** A finding of a reader, before it has a line. */
export interface Finding {
  readonly offset: number;
  readonly message: string;
}

/** Line starts of a text. */
export interface LineIndex {
  position(offset: number): Position;
  /** The line (1-based) without its line end; empty behind the last. */
  text(line: number): string;
}

/** A value with its place in the text. */
export interface SourceNode {
  readonly value: JsonValue;
  readonly offset: number;
  /** Source text of a scalar without quotes and tag; `undefined` for all others. */
  readonly plain: string | undefined;
  /** Comment behind a scalar on its line, without `#`. */
  readonly comment: string | undefined;
  /** Entries of a mapping, those of `<<` included. */
  readonly members: ReadonlyMap<string, SourceMember> | undefined;
  /** Entries of a list. */
  readonly items: readonly SourceNode[] | undefined;
  /** Length of the value once its aliases are written out, in about characters. */
  readonly size: number;
  /** Levels of nesting, its own included; 0 for a scalar. */
  readonly depth: number;
}

/** An entry of a mapping. */
export interface SourceMember {
  readonly keyOffset: number;
  readonly node: SourceNode;
  /** What the places in its node are behind those in this text, where it was read in another. Default 0. */
  readonly shift?: number;
}

/** A mapping read from YAML or JSON text that still knows where everything stood. */
export interface SourceDocument {
  readonly value: JsonObject;
  /** Whether there is something at the pointer. */
  has(pointer: string): boolean;
  /**
   * Where a key or list entry stands. A pointer to what is not there gives its nearest ancestor that is; the whole
   * document begins at its first key.
   */
  position(pointer: string): Position;
  /**
   * Source text of a scalar without quotes and tag, such as `007`, whatever it was read as; `undefined` for every
   * other value. JSON has no such scalars, since its numbers are numbers.
   */
  scalarSource(pointer: string): string | undefined;
  /** Comment behind a scalar on its line, without `#`. */
  comment(pointer: string): string | undefined;
}

/** Indexes the lines of a text as far as it is asked for; lines end in LF or CRLF. */
export function indexLines(text: string): LineIndex {
  const starts = [0];
  /** Finds line starts while they are wanted. */
  const extend = (wanted: (last: number) => boolean): void => {
    for (let last = starts.at(-1) ?? 0; wanted(last); ) {
      const at = text.indexOf("\n", last);
      if (at < 0) return;
      last = at + 1;
      starts.push(last);
    }
  };
  return {
    position: (offset) => {
      extend((last) => last <= offset);
      const line = countUpTo(starts, offset);
      return { line, column: offset - (starts[line - 1] ?? 0) + 1 };
    },
    text: (line) => {
      extend(() => starts.length <= line);
      return text.slice(starts[line - 1] ?? text.length, starts[line] ?? text.length).replace(/\r?\n$/, "");
    },
  };
}

/** Makes a node of a value that holds no others. */
export function scalarNode(value: JsonValue, offset: number, plain?: string, comment?: string): SourceNode {
  const size = 1 + (typeof value === "string" ? value.length : 0);
  return { value, offset, plain, comment, members: undefined, items: undefined, size, depth: 0 };
}

/** Makes a node of a mapping. Names such as `__proto__` are names like any other. */
export function mappingNode(members: ReadonlyMap<string, SourceMember>, offset: number): SourceNode {
  const value: Record<string, JsonValue> = {};
  let size = 1;
  let depth = 0;
  for (const [name, { node }] of members) {
    if (name === "__proto__") setOwn(value, name, node.value);
    else value[name] = node.value;
    size += name.length + node.size;
    depth = Math.max(depth, node.depth);
  }
  return { value, offset, plain: undefined, comment: undefined, members, items: undefined, size, depth: depth + 1 };
}

/** Sets a property whose name has a meaning of its own in an assignment. */
function setOwn(object: object, name: string, value: JsonValue): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Makes a node of a list. */
export function listNode(items: readonly SourceNode[], offset: number): SourceNode {
  const value = items.map((item) => item.value);
  let size = 1;
  let depth = 0;
  for (const item of items) {
    size += item.size;
    depth = Math.max(depth, item.depth);
  }
  return { value, offset, plain: undefined, comment: undefined, members: undefined, items, size, depth: depth + 1 };
}

/** Makes a document of its root; `undefined` where that is no mapping. */
export function createSourceDocument(root: SourceNode, lines: LineIndex): SourceDocument | undefined {
  const { value } = root;
  if (!isJsonObject(value)) return undefined;
  const exact = (pointer: string): SourceNode | undefined => {
    const found = locate(root, pointer);
    return found.whole ? found.node : undefined;
  };
  return {
    value,
    has: (pointer) => exact(pointer) !== undefined,
    position: (pointer) => lines.position(locate(root, pointer).offset),
    scalarSource: (pointer) => exact(pointer)?.plain,
    comment: (pointer) => exact(pointer)?.comment,
  };
}

/** Follows a pointer as far as it goes. */
function locate(root: SourceNode, pointer: string): { node: SourceNode; offset: number; whole: boolean } {
  let node = root;
  let offset = root.offset;
  let shift = 0;
  for (const step of pointerSteps(pointer)) {
    const member = node.members?.get(step);
    const next =
      member?.node ?? (node.items !== undefined && /^\d+$/.test(step) ? node.items[Number(step)] : undefined);
    if (next === undefined) return { node, offset, whole: false };
    offset = (member?.keyOffset ?? next.offset) + shift;
    shift += member?.shift ?? 0;
    node = next;
  }
  return { node, offset, whole: true };
}

/** How many of the ascending numbers are at most `limit`. */
function countUpTo(numbers: readonly number[], limit: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
