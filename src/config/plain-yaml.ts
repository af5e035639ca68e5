import type { JsonValue } from "../core/json.ts";
import { plainValue } from "./plain-scalar.ts";
import { type Entry, partText, type SharedParts } from "./shared-parts.ts";
import type { SourceMember, SourceNode } from "./source-document.ts";
import { listNode, mappingNode, scalarNode } from "./source-document.ts";

/** Most values that are read here: a document that holds more is not read at all. */
const MAX_VALUES = 20_000;

/** Deepest nesting that is read here. */
const MAX_DEPTH = 32;

/** Most characters of a key. */
const MAX_KEY = 100;

/** What a plain scalar begins with here: no sign that means something else, and a `-` only before a letter or digit. */
const PLAIN_START = /[^\s\-?:,[\]{}#&*!|>'"%@`]|-\w/y;

/** A plain scalar inside { } and [ ], on one line. */
const FLOW_PLAIN = /[^,[\]{}\n]+/y;

const DOUBLE_QUOTED = /"(?:[^"\\\n]|\\["\\nt])*"/y;

const SINGLE_QUOTED = /'(?:[^'\n]|'')*'/y;

/** What may stand behind a value on its line. */
const LINE_END = /(?: *| +#([^\n]*))(?:\n|$)/y;

/** Beginning of a block of text that keeps its lines. */
const LITERAL = /\|(-?)\n/y;

/** The reader's place in the text. */
interface Cursor {
  readonly text: string;
  at: number;
  /**
   * Spaces before the content that `at` stands at, where it is the first of its line; -1 at the end of the text; NaN,
   * which no other number equals or is above or below, where the whole reader has to see to it.
   */
  indent: number;
  depth: number;
  /** How many values have been begun. */
  values: number;
}

/**
 * Reads YAML of the simple kind that nearly all declarations are, twenty times as fast as the whole reader, with the
 * very outcome that one has. `undefined` for everything else, whether it is right or wrong: several lines in one plain
 * or quoted scalar, anchors, tags, unusual keys and numbers, anything that takes a second look.
 *
 * @param parts where lists and mappings at the top are looked up, and kept. Default: they are all read.
 */
export function readPlainYaml(text: string, parts?: SharedParts): SourceNode | undefined {
  if (text.includes("\t") || text.includes("\r")) return undefined;
  const cursor: Cursor = { text, at: 0, indent: 0, depth: 0, values: 0 };
  toContent(cursor);
  if (cursor.indent !== 0) return undefined;
  const root = readMapping(cursor, 0, parts?.takes(text) === true ? parts : undefined);
  return cursor.indent < 0 ? root : undefined;
}

/** From the beginning of a line to the next content, past empty lines and comments. */
function toContent(cursor: Cursor): void {
  const { text } = cursor;
  let commentIndent = 0;
  cursor.indent = -1;
  while (cursor.at < text.length) {
    const start = cursor.at;
    skipSpaces(cursor);
    const sign = text[cursor.at];
    if (sign === "#") commentIndent = Math.max(commentIndent, cursor.at - start);
    else if (sign !== undefined && sign !== "\n") {
      cursor.indent = cursor.at - start;
      break;
    }
    cursor.at = lineEnd(cursor) + 1;
  }
  // The whole reader may take such a comment for one of the value before it.
  if (commentIndent > Math.max(cursor.indent, 0)) cursor.indent = Number.NaN;
}

function readMapping(cursor: Cursor, indent: number, parts?: SharedParts): SourceNode | undefined {
  const offset = cursor.at;
  const members = new Map<string, SourceMember>();
  do {
    const entry = parts === undefined ? readEntry(cursor, indent) : readPart(cursor, parts);
    if (entry === undefined || members.has(entry.name)) return undefined;
    members.set(entry.name, entry.member);
  } while (cursor.indent === indent);
  return cursor.indent < indent ? mappingNode(members, offset) : undefined;
}

function readEntry(cursor: Cursor, indent: number): Entry | undefined {
  const keyOffset = cursor.at;
  const name = takeKey(cursor);
  if (name === undefined || !enter(cursor)) return undefined;
  const node = readMember(cursor, indent);
  cursor.depth--;
  return node === undefined ? undefined : { name, member: { keyOffset, node } };
}

/** An entry at the top: one that was read before is taken as it is. */
function readPart(cursor: Cursor, parts: SharedParts): Entry | undefined {
  const { at: keyOffset, values } = cursor;
  const text = partText(cursor.text, keyOffset);
  if (text === undefined) return readEntry(cursor, 0);
  const known = parts.find(text);
  if (known !== undefined) {
    const { name, member } = known;
    const moved = { keyOffset, node: member.node, shift: keyOffset - member.keyOffset };
    return skipPart(cursor, text, known.values) ? { name, member: moved } : undefined;
  }
  const entry = readEntry(cursor, 0);
  // A scalar over several lines is read in no time, and hardly ever the same in two documents.
  const isKept = entry !== undefined && entry.member.node.depth > 0 && cursor.at === keyOffset + text.length;
  if (isKept) parts.keep(text, { ...entry, values: cursor.values - values });
  return entry;
}

/** Goes on behind a part that need not be read; false where it holds one value too many. */
function skipPart(cursor: Cursor, text: string, values: number): boolean {
  cursor.at += text.length;
  cursor.values += values;
  cursor.indent = cursor.at < cursor.text.length ? 0 : -1;
  return cursor.values <= MAX_VALUES;
}

/** What stands behind a key. */
function readMember(cursor: Cursor, indent: number): SourceNode | undefined {
  skipSpaces(cursor);
  const sign = cursor.text[cursor.at];
  if (sign === "|") return readLiteral(cursor, indent);
  if (sign !== "\n") return readInline(cursor);
  cursor.at++;
  toContent(cursor);
  if (isEntry(cursor)) return cursor.indent >= indent ? readList(cursor, cursor.indent) : undefined;
  return cursor.indent > indent ? readMapping(cursor, cursor.indent) : undefined;
}

function readList(cursor: Cursor, indent: number): SourceNode | undefined {
  const offset = cursor.at;
  const items: SourceNode[] = [];
  do {
    const lineStart = cursor.at - indent;
    cursor.at++;
    skipSpaces(cursor);
    const column = cursor.at - lineStart;
    if (!enter(cursor)) return undefined;
    const node = keyEnd(cursor) < 0 ? readInline(cursor) : readMapping(cursor, column);
    cursor.depth--;
    if (node === undefined) return undefined;
    items.push(node);
  } while (cursor.indent === indent && isEntry(cursor));
  return cursor.indent <= indent ? listNode(items, offset) : undefined;
}

/** A value on one line, with what ends the line. */
function readInline(cursor: Cursor): SourceNode | undefined {
  const { text, at } = cursor;
  switch (text[at]) {
    case "{":
    case "[": {
      const node = readFlow(cursor);
      return node === undefined || endLine(cursor) === undefined ? undefined : node;
    }
    case '"':
    case "'": {
      const value = readQuoted(cursor);
      return value === undefined ? undefined : endScalar(cursor, at, value);
    }
    default: {
      const line = text.slice(at, lineEnd(cursor));
      const comment = line.indexOf(" #");
      const source = withoutEndSpaces(comment < 0 ? line : line.slice(0, comment));
      cursor.at = at + source.length;
      const value = source.includes(": ") || !isPlain(source, text, at) ? undefined : plainValue(source);
      return value === undefined ? undefined : endScalar(cursor, at, value, source);
    }
  }
}

function endScalar(cursor: Cursor, offset: number, value: JsonValue, source?: string): SourceNode | undefined {
  const end = endLine(cursor);
  return end === undefined ? undefined : scalarNode(value, offset, source, end.comment);
}

interface LineEnd {
  readonly comment: string | undefined;
}

const NO_COMMENT: LineEnd = { comment: undefined };

/** `undefined` where more stands on the line. */
function endLine(cursor: Cursor): LineEnd | undefined {
  if (cursor.text[cursor.at] === "\n") {
    cursor.at++;
    toContent(cursor);
    return NO_COMMENT;
  }
  const found = take(LINE_END, cursor);
  if (found === undefined) return undefined;
  toContent(cursor);
  // A comment without a text is a space to the whole reader.
  return { comment: found[1] === "" ? " " : found[1] };
}

/** A block of text behind `|` or `|-`. */
function readLiteral(cursor: Cursor, indent: number): SourceNode | undefined {
  const offset = cursor.at;
  const header = take(LITERAL, cursor);
  const lines = header === undefined ? undefined : readLines(cursor, indent);
  // A comment behind a block is left to the whole reader, and so is a block without lines.
  if (lines === undefined || lines.length === 0 || cursor.text[cursor.at] === "#") return undefined;
  toContent(cursor);
  while (lines.at(-1) === "") lines.pop();
  return scalarNode(lines.join("\n") + (header?.[1] === "-" ? "" : "\n"), offset);
}

/** The lines of a block without the indentation of the first, which must not be empty. */
function readLines(cursor: Cursor, indent: number): string[] | undefined {
  const lines: string[] = [];
  let width: number | undefined;
  while (true) {
    const start = cursor.at;
    skipSpaces(cursor);
    const spaces = cursor.at - start;
    const end = lineEnd(cursor);
    const isEmpty = cursor.at === end;
    if (spaces <= indent && !(isEmpty && spaces === 0 && end < cursor.text.length)) {
      cursor.at = start;
      return lines;
    }
    if (spaces > 0) width ??= spaces;
    if (width === undefined || (spaces > 0 && (isEmpty || spaces < width))) return undefined;
    lines.push(cursor.text.slice(start + width, end));
    cursor.at = end + 1;
  }
}

/** A mapping or list inside { } or [ ], on one line. */
function readFlow(cursor: Cursor): SourceNode | undefined {
  return cursor.text[cursor.at] === "{" ? readFlowMapping(cursor) : readFlowList(cursor);
}

function readNestedFlow(cursor: Cursor): SourceNode | undefined {
  if (!enter(cursor)) return undefined;
  const node = readFlow(cursor);
  cursor.depth--;
  return node;
}

function readFlowMapping(cursor: Cursor): SourceNode | undefined {
  const offset = cursor.at;
  const members = new Map<string, SourceMember>();
  const whole = readEntries(cursor, "}", () => {
    const keyOffset = cursor.at;
    const name = takeKey(cursor);
    skipSpaces(cursor);
    if (name === undefined || members.has(name)) return false;
    const node = readFlowValue(cursor);
    if (node === undefined) return false;
    members.set(name, { keyOffset, node });
    return true;
  });
  return whole ? mappingNode(members, offset) : undefined;
}

function readFlowList(cursor: Cursor): SourceNode | undefined {
  const offset = cursor.at;
  const items: SourceNode[] = [];
  const whole = readEntries(cursor, "]", () => {
    const node = readFlowValue(cursor);
    if (node !== undefined) items.push(node);
    return node !== undefined;
  });
  return whole ? listNode(items, offset) : undefined;
}

/** Reads entries between commas, the brackets included. */
function readEntries(cursor: Cursor, end: "}" | "]", readOne: () => boolean): boolean {
  cursor.at++;
  skipSpaces(cursor);
  let sign = cursor.text[cursor.at] === end ? end : ",";
  if (sign === end) cursor.at++;
  while (sign === ",") {
    skipSpaces(cursor);
    if (!readOne()) return false;
    skipSpaces(cursor);
    sign = cursor.text[cursor.at++] ?? "";
  }
  return sign === end;
}

function readFlowValue(cursor: Cursor): SourceNode | undefined {
  const { text, at } = cursor;
  const sign = text[at];
  if (++cursor.values > MAX_VALUES) return undefined;
  if (sign === "{" || sign === "[") return readNestedFlow(cursor);
  if (sign === '"' || sign === "'") {
    const value = readQuoted(cursor);
    return value === undefined ? undefined : scalarNode(value, at);
  }
  const source = withoutEndSpaces(take(FLOW_PLAIN, cursor)?.[0] ?? "");
  if (!isPlain(source, text, at) || /: | #/.test(source)) return undefined;
  const value = plainValue(source);
  return value === undefined ? undefined : scalarNode(value, at, source);
}

function readQuoted(cursor: Cursor): string | undefined {
  if (cursor.text[cursor.at] === "'") {
    return take(SINGLE_QUOTED, cursor)?.[0].slice(1, -1).replaceAll("''", "'");
  }
  const quoted = take(DOUBLE_QUOTED, cursor)?.[0];
  // These escapes mean the same in JSON.
  return quoted?.includes("\\") === true ? (JSON.parse(quoted) as string) : quoted?.slice(1, -1);
}

/** Whether a text at a place is a plain scalar as far as its two ends tell. */
function isPlain(source: string, text: string, at: number): boolean {
  PLAIN_START.lastIndex = at;
  return source !== "" && PLAIN_START.test(text) && !source.endsWith(":");
}

/** Counts a level and a value in; false where that is one too many. Who enters leaves by `depth--`. */
function enter(cursor: Cursor): boolean {
  if (cursor.depth === MAX_DEPTH || ++cursor.values > MAX_VALUES) return false;
  cursor.depth++;
  return true;
}

/** Whether a list entry begins at the place. */
function isEntry({ text, at }: Cursor): boolean {
  return text[at] === "-" && text[at + 1] === " ";
}

/** Where a key ends whose colon a space or the end of the line follows; -1 where none begins at the place. */
function keyEnd({ text, at }: Cursor): number {
  const limit = Math.min(text.length, at + MAX_KEY);
  let end = at;
  while (end < limit && isKeySign(text.charCodeAt(end), end === at)) end++;
  if (end === at || text[end] !== ":") return -1;
  const next = text[end + 1];
  return next === " " || next === "\n" || next === undefined ? end : -1;
}

/** Letters and `_`; behind the first also digits, dots and `-`. */
function isKeySign(code: number, first: boolean): boolean {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95) return true;
  return !first && ((code >= 48 && code <= 57) || code === 45 || code === 46);
}

/** A key at the place, and goes on behind its colon. */
function takeKey(cursor: Cursor): string | undefined {
  const end = keyEnd(cursor);
  if (end < 0) return undefined;
  const name = cursor.text.slice(cursor.at, end);
  cursor.at = end + 1;
  return name;
}

/** What a pattern matches at the place, and goes on behind it. */
function take(pattern: RegExp, cursor: Cursor): RegExpExecArray | undefined {
  pattern.lastIndex = cursor.at;
  const found = pattern.exec(cursor.text);
  if (found === null) return undefined;
  cursor.at = pattern.lastIndex;
  return found;
}

function skipSpaces(cursor: Cursor): void {
  while (cursor.text[cursor.at] === " ") cursor.at++;
}

/** Where the line ends. */
function lineEnd({ text, at }: Cursor): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

function withoutEndSpaces(text: string): string {
  let end = text.length;
  while (text[end - 1] === " ") end--;
  return end === text.length ? text : text.slice(0, end);
}
