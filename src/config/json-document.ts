import { MAX_JSON_DEPTH } from "../core/json.ts";
import type { Finding, LineIndex, SourceMember, SourceNode } from "./source-document.ts";
import { listNode, mappingNode, scalarNode } from "./source-document.ts";
import { holdsLoneSurrogate, inline, LONE_SURROGATE, writtenTwice } from "./wording.ts";

/** Most values of one document: enough for any tool, and few enough to be read and checked in a moment. */
const MAX_VALUES = 20_000;

/** A number as JSON writes it. Source: RFC 8259, section 6. */
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const SPACE = /[ \t\r\n]*/y;

/** Where reading cannot go on. Caught in this file. */
class JsonFault extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/** The reader's place in the text. */
interface Cursor {
  readonly text: string;
  readonly lines: LineIndex;
  readonly findings: Finding[];
  at: number;
  depth: number;
  values: number;
}

/**
 * Reads JSON text (RFC 8259) with the place of every value. Reading ends at the first breach of the grammar; keys
 * written twice are found up to there. Integers beyond 2^53 become `bigint`.
 */
export function readJson(text: string, lines: LineIndex): { root: SourceNode | undefined; findings: Finding[] } {
  const cursor: Cursor = { text, lines, findings: [], at: 0, depth: 0, values: 0 };
  try {
    skipSpace(cursor);
    const root = readValue(cursor);
    skipSpace(cursor);
    if (cursor.at < text.length) throw new JsonFault(cursor.at, `${got(cursor)} follows the end of the JSON value`);
    return { root, findings: cursor.findings };
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    cursor.findings.push({ offset: error.offset, message: error.message });
    return { root: undefined, findings: cursor.findings };
  }
}

function readValue(cursor: Cursor): SourceNode {
  const offset = cursor.at;
  if (++cursor.values > MAX_VALUES) throw new JsonFault(offset, `more than ${MAX_VALUES} values in one document`);
  switch (cursor.text[offset]) {
    case "{":
      return nested(cursor, readMembers);
    case "[":
      return nested(cursor, readItems);
    case '"':
      return scalarNode(readString(cursor), offset);
    case "t":
      return readWord(cursor, "true", true);
    case "f":
      return readWord(cursor, "false", false);
    case "n":
      return readWord(cursor, "null", null);
    default:
      return readNumber(cursor);
  }
}

function nested(cursor: Cursor, read: (cursor: Cursor) => SourceNode): SourceNode {
  if (cursor.depth === MAX_JSON_DEPTH) {
    throw new JsonFault(cursor.at, `nested deeper than ${MAX_JSON_DEPTH} levels`);
  }
  cursor.depth++;
  const node = read(cursor);
  cursor.depth--;
  return node;
}

function readMembers(cursor: Cursor): SourceNode {
  const start = cursor.at;
  const members = new Map<string, SourceMember>();
  readEntries(cursor, "}", () => {
    const keyOffset = cursor.at;
    if (cursor.text[keyOffset] !== '"')
      throw new JsonFault(keyOffset, `expected a key in double quotes, got ${got(cursor)}`);
    const name = readString(cursor);
    skipSpace(cursor);
    if (cursor.text[cursor.at] !== ":")
      throw new JsonFault(cursor.at, `expected \`:\` behind a key, got ${got(cursor)}`);
    cursor.at++;
    skipSpace(cursor);
    const node = readValue(cursor);
    const first = members.get(name);
    if (first === undefined) members.set(name, { keyOffset, node });
    else
      cursor.findings.push({
        offset: keyOffset,
        message: writtenTwice(cursor.lines, name, first.keyOffset, keyOffset),
      });
  });
  return mappingNode(members, start);
}

function readItems(cursor: Cursor): SourceNode {
  const start = cursor.at;
  const items: SourceNode[] = [];
  readEntries(cursor, "]", () => {
    items.push(readValue(cursor));
  });
  return listNode(items, start);
}

/** Reads entries between commas, the brackets included. */
function readEntries(cursor: Cursor, end: "}" | "]", readEntry: () => void): void {
  const start = cursor.at;
  cursor.at++;
  skipSpace(cursor);
  if (cursor.text[cursor.at] === end) {
    cursor.at++;
    return;
  }
  while (true) {
    readEntry();
    skipSpace(cursor);
    const sign = cursor.text[cursor.at];
    if (sign === undefined) throw new JsonFault(start, `this \`${cursor.text[start]}\` is not closed by \`${end}\``);
    if (sign !== "," && sign !== end)
      throw new JsonFault(cursor.at, `expected \`,\` or \`${end}\`, got ${got(cursor)}`);
    cursor.at++;
    if (sign === end) return;
    skipSpace(cursor);
    if (cursor.text[cursor.at] === end)
      throw new JsonFault(cursor.at, `a comma stands before \`${end}\`, which JSON does not allow`);
  }
}

function readString(cursor: Cursor): string {
  const start = cursor.at;
  let end = start + 1;
  while (cursor.text[end] !== '"') {
    if (end >= cursor.text.length) throw new JsonFault(start, "this text is not closed by a double quote");
    end += cursor.text[end] === "\\" ? 2 : 1;
  }
  cursor.at = end + 1;
  const value = unescape(cursor.text.slice(start, end + 1));
  if (value === undefined) {
    throw new JsonFault(
      start,
      "this text holds a line break, a control character or an unknown escape; JSON writes them as \\n, \\u0007 and \\\\",
    );
  }
  if (holdsLoneSurrogate(value)) cursor.findings.push({ offset: start, message: LONE_SURROGATE });
  return value;
}

function unescape(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function readWord(cursor: Cursor, word: string, value: boolean | null): SourceNode {
  const offset = cursor.at;
  if (!cursor.text.startsWith(word, offset)) throw new JsonFault(offset, `expected a JSON value, got ${got(cursor)}`);
  cursor.at += word.length;
  return scalarNode(value, offset);
}

function readNumber(cursor: Cursor): SourceNode {
  const offset = cursor.at;
  NUMBER.lastIndex = offset;
  const source = NUMBER.exec(cursor.text)?.[0];
  if (source === undefined) throw new JsonFault(offset, `expected a JSON value, got ${got(cursor)}`);
  cursor.at += source.length;
  const value = Number(source);
  if (!Number.isFinite(value)) throw new JsonFault(offset, `the number ${source.slice(0, 40)} is out of range`);
  const exact = Number.isSafeInteger(value) || !/^-?\d+$/.test(source) ? value : BigInt(source);
  return scalarNode(exact, offset);
}

function skipSpace(cursor: Cursor): void {
  SPACE.lastIndex = cursor.at;
  cursor.at += SPACE.exec(cursor.text)?.[0].length ?? 0;
}

function got(cursor: Cursor): string {
  const rest = cursor.text.slice(cursor.at, cursor.at + 20);
  const word = /^(?:[\w.+-]+|[^])/u.exec(rest)?.[0];
  return word === undefined ? "the end of the text" : `\`${inline(word)}\``;
}
