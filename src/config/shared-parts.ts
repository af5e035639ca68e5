import { freezeJson } from "../core/shared-values.ts";
import type { SourceMember } from "./source-document.ts";

/** Most parts of a generation, and most values in all of them together; two generations are kept. */
const MAX_PARTS = 250;
const MAX_VALUES = 10_000;

/** Longest document that shares its parts with others, in characters: a part that is kept keeps the whole text. */
const MAX_DOCUMENT = 16 * 1024;

/** An entry of a mapping. */
export interface Entry {
  readonly name: string;
  readonly member: SourceMember;
}

/** An entry at the top of a document. Its places are those of the text that it was read from. */
export interface Part extends Entry {
  /** How many values it holds, its own included. */
  readonly values: number;
}

/**
 * Parts of documents by their text. Whoever has thousands of declarations has most parts of them in the same words: such
 * a part is read once, and its value is one and the same in all of them. It is frozen when it is met a second time, which
 * tells others that what they work out of it is worth keeping ({@link SharedResults}).
 */
export class SharedParts {
  #recent = new Map<string, Part>();
  #former: ReadonlyMap<string, Part> = new Map();
  /** Of the recent ones. */
  #values = 0;

  /** Whether a document is one that shares its parts. */
  takes(document: string): boolean {
    return document.length <= MAX_DOCUMENT;
  }

  /** The part with this text, where it was read not long ago. */
  find(text: string): Part | undefined {
    const recent = this.#recent.get(text);
    if (recent !== undefined) return shared(recent);
    const former = this.#former.get(text);
    if (former === undefined) return undefined;
    this.keep(text, former);
    return shared(former);
  }

  /** Keeps a part. Those that are not asked for give way, many at a time. */
  keep(text: string, part: Part): void {
    if (this.#recent.size >= MAX_PARTS || this.#values + part.values > MAX_VALUES) {
      this.#former = this.#recent;
      this.#recent = new Map();
      this.#values = 0;
    }
    if (part.values > MAX_VALUES) return;
    this.#recent.set(text, part);
    this.#values += part.values;
  }
}

function shared(part: Part): Part {
  freezeJson(part.member.node.value);
  return part;
}

/**
 * Text of the entry that begins at a place of a YAML text, up to the next one: what it means depends on nothing else.
 * `undefined` where it is no more than a scalar on one line.
 */
export function partText(text: string, at: number): string | undefined {
  const first = lineEnd(text, at);
  let end = first;
  while (end < text.length && isWithin(text, end + 1)) end = lineEnd(text, end + 1);
  const last = text[first - 1];
  return end > first || last === "}" || last === "]" ? text.slice(at, end + 1) : undefined;
}

/** Whether a line goes on with the entry before it: it is indented, empty, a comment or an item of a list. */
function isWithin(text: string, lineStart: number): boolean {
  const sign = text[lineStart];
  return sign === " " || sign === "\n" || sign === "#" || (sign === "-" && text[lineStart + 1] === " ");
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}
