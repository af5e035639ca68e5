import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownValue,
  parseJson,
  stringifyJson,
} from "../../core/json.ts";
import { queryInvalid, type ResultQuery, type ResultSource } from "../../core/results.ts";
import { codePointCount } from "../../core/text.ts";
import { headerDelimiter, readRecords, uniqueNames } from "../summary/delimited.ts";
import type { Place } from "./cursor.ts";
import { valueAt } from "./json-page.ts";
import { piecesFrom } from "./text-scan.ts";

type RowQuery = Extract<ResultQuery, { type: "rows" }>;

/** Rows as a JSON list of objects, and where the next begin. */
export interface RowPage {
  readonly text: string;
  readonly next: Place | undefined;
}

/** How large a page may be. */
export interface PageLimits {
  readonly maxLength: number;
  readonly signal: AbortSignal;
}

/** Longest row of a text, in bytes. */
const MAX_ROW_BYTES = 1024 * 1024;

/** Rows of a list in a JSON value. */
export function readJsonRows(root: JsonValue, query: RowQuery, maxLength: number): RowPage {
  const list = valueAt(root, query.path, "rows.path");
  if (!isJsonArray(list)) throw queryInvalid("rows.path", "does not lead to a list; read it as JSON");
  const rows = new Rows(query, maxLength);
  let at = query.offset;
  for (; at < list.length && rows.takesMore; at++) if (!rows.add(list[at] ?? null)) break;
  const left = query.limit === 0 ? 0 : query.limit - rows.count;
  const more = at < list.length && (query.limit === 0 || left > 0);
  return { text: rows.text, next: more ? { query: { ...query, offset: at, limit: left } } : undefined };
}

/** Rows of JSON lines, or of a table whose cells a sign separates and whose first row names its columns. */
export async function readTextRows(
  source: ResultSource,
  query: RowQuery,
  from: number | undefined,
  { maxLength, signal }: PageLimits,
): Promise<RowPage> {
  if (query.path !== "") throw queryInvalid("rows.path", "has no meaning here: the result is a table and not JSON");
  const header = await firstRecord(source, signal);
  const parse = parserOf(header.text, query.columns);
  const rows = new Rows(query, maxLength);
  // The first page has to look for its row; the others know where theirs is.
  let skip = from === undefined ? query.offset : 0;
  let next = from ?? (parse.isHeader ? header.end : 0);
  for await (const record of recordsFrom(source, next, signal)) {
    if (skip > 0) skip -= 1;
    else if (!rows.takesMore || !rows.add(parse.row(record.text))) break;
    next = record.end;
  }
  return { text: rows.text, next: rows.placeAfter(query, next, source) };
}

/** Rows that fit a page. */
class Rows {
  readonly #query: RowQuery;
  readonly #texts: string[] = [];
  readonly #maxLength: number;
  #room: number;

  constructor(query: RowQuery, maxLength: number) {
    this.#query = query;
    this.#maxLength = maxLength - 2;
    this.#room = maxLength - 2;
  }

  get count(): number {
    return this.#texts.length;
  }

  get takesMore(): boolean {
    return this.#query.limit === 0 || this.count < this.#query.limit;
  }

  get text(): string {
    return `[${this.#texts.join(",")}]`;
  }

  /** Where the rows of a text go on; undefined: there are no more, or no more are asked for. */
  placeAfter(query: RowQuery, byte: number, { facts }: ResultSource): Place | undefined {
    const left = query.limit === 0 ? 0 : query.limit - this.count;
    if (byte >= facts.bytes || (query.limit > 0 && left <= 0)) return undefined;
    return { query: { ...query, offset: query.offset + this.count, limit: left }, byte };
  }

  /** False where there is no room for it; a line without a row takes none. */
  add(row: JsonValue | undefined): boolean {
    if (row === undefined) return true;
    const whole = stringifyJson(withColumns(row, this.#query.columns));
    const length = codePointCount(whole);
    const text = length <= this.#maxLength ? whole : stringifyJson(`[not shown: a row of ${length} characters]`);
    this.#room -= codePointCount(text) + 1;
    if (this.#room < 0 && this.count > 0) return false;
    this.#texts.push(text);
    return true;
  }
}

function withColumns(row: JsonValue, columns: readonly string[]): JsonValue {
  if (columns.length === 0) return row;
  if (!isJsonObject(row)) throw queryInvalid("rows.columns", "has no meaning here: the rows are no objects");
  const cells = columns.flatMap((name): [string, JsonValue][] => {
    const value = ownValue(row, name);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(cells);
}

interface RowParser {
  /** Whether the first record names the columns. */
  readonly isHeader: boolean;
  /** Undefined for a line without a row. */
  row(text: string): JsonObject | undefined;
}

function parserOf(first: string, columns: readonly string[]): RowParser {
  if (/^\s*\{/.test(first)) return { isHeader: false, row: jsonRow };
  const delimiter = headerDelimiter(first);
  const names = uniqueNames(readRecords(first, delimiter)[0] ?? []);
  const unknown = columns.find((column) => !names.includes(column));
  if (unknown !== undefined) {
    const known = names.join(", ").slice(0, 500);
    throw queryInvalid("rows.columns", `names \`${unknown.slice(0, 100)}\`, and the columns are ${known}`);
  }
  const row = (text: string): JsonObject | undefined => {
    const cells = readRecords(text, delimiter)[0];
    return cells === undefined ? undefined : Object.fromEntries(names.map((name, i) => [name, cells[i] ?? ""]));
  };
  return { isHeader: true, row };
}

function jsonRow(text: string): JsonObject | undefined {
  if (text.trim() === "") return undefined;
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : { value };
  } catch (error) {
    if (error instanceof SyntaxError) return { "not JSON": text };
    throw error;
  }
}

interface TextRecord {
  readonly text: string;
  /** First byte after it. */
  readonly end: number;
}

async function firstRecord(source: ResultSource, signal: AbortSignal): Promise<TextRecord> {
  for await (const record of recordsFrom(source, 0, signal)) return record;
  return { text: "", end: 0 };
}

/** Records from a byte on: a line break within quotes is none. */
async function* recordsFrom(
  source: ResultSource,
  byte: number,
  signal: AbortSignal,
): AsyncGenerator<TextRecord, void, undefined> {
  let held: Buffer = Buffer.alloc(0);
  let at = byte;
  for await (const piece of piecesFrom(source, byte, signal)) {
    held = held.byteLength === 0 ? piece : Buffer.concat([held, piece]);
    let from = 0;
    for (let end = endOfRecord(held, from); end !== undefined; end = endOfRecord(held, from)) {
      yield { text: recordText(held.subarray(from, end)), end: at + end };
      from = end;
    }
    at += from;
    held = held.subarray(from);
    if (held.byteLength > MAX_ROW_BYTES)
      throw queryInvalid("rows", `finds a row of more than ${MAX_ROW_BYTES} bytes; read lines or bytes`);
  }
  if (held.byteLength > 0) yield { text: recordText(held), end: at + held.byteLength };
}

function recordText(bytes: Buffer): string {
  return bytes.toString("utf8").replace(/\r?\n$/, "");
}

/** JSON lines escape their quotes and have no line break in them, so that they end at the first. */
function endOfRecord(bytes: Buffer, from: number): number | undefined {
  const json = bytes[from] === 123;
  let quoted = false;
  for (let at = from; at < bytes.byteLength; at++) {
    const byte = bytes[at];
    if (byte === 34 && !json) quoted = !quoted;
    else if (byte === 10 && !quoted) return at + 1;
  }
  return undefined;
}
