import { isJsonArray, type JsonValue, parseJson, stringifyJson } from "../../core/json.ts";
import { queryInvalid, type ResultQuery } from "../../core/results.ts";

/** Longest cursor; a search pattern stands in it. */
const MAX_LENGTH = 8_000;

/** Where a page begins: a query, and for text how far into the bytes it has come. */
export interface Place {
  readonly query: ResultQuery;
  /** First byte of what comes next; undefined: it has to be looked for. */
  readonly byte?: number | undefined;
}

/** A place as text. It tells nothing that its reader did not say, and is of no use without the right to read. */
export function encodeCursor({ query, byte }: Place): string {
  return Buffer.from(stringifyJson([...fieldsOf(query), byte ?? null])).toString("base64url");
}

/** The place in a cursor. @throws GatewayError RESULT_QUERY_INVALID. */
export function decodeCursor(cursor: string): Place {
  const place = cursor.length > MAX_LENGTH ? undefined : placeOf(parsed(cursor));
  if (place === undefined) throw queryInvalid("cursor", "is none that a page came with; send it as it came");
  return place;
}

function fieldsOf(query: ResultQuery): readonly JsonValue[] {
  switch (query.type) {
    case "json":
      return [query.type, query.path, query.offset, query.limit];
    case "rows":
      return [query.type, query.path, query.offset, query.limit, [...query.columns]];
    case "lines":
      return [query.type, query.start, query.count];
    case "bytes":
      return [query.type, query.offset, query.length];
    case "search":
      return [query.type, query.pattern, query.limit, query.regex, query.ignoreCase];
  }
}

function parsed(cursor: string): JsonValue {
  try {
    return parseJson(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function placeOf(value: JsonValue): Place | undefined {
  if (!isJsonArray(value)) return undefined;
  const query = queryOf(value);
  const byte = value.at(-1);
  if (query === undefined) return undefined;
  return byte === null ? { query } : isCount(byte) ? { query, byte } : undefined;
}

type Fields = readonly JsonValue[];

/** What makes a query of the fields after its type; undefined where they are none. */
const QUERIES: Readonly<Record<ResultQuery["type"], (fields: Fields) => ResultQuery | undefined>> = {
  json: ([path, offset, limit]) =>
    isText(path) && isCount(offset) && isCount(limit) ? { type: "json", path, offset, limit } : undefined,
  rows: ([path, offset, limit, names = null]) => {
    const columns = isJsonArray(names) ? names.filter(isText) : [];
    return isText(path) && isCount(offset) && isCount(limit)
      ? { type: "rows", path, offset, limit, columns }
      : undefined;
  },
  lines: ([start, count]) => (isCount(start) && isCount(count) ? { type: "lines", start, count } : undefined),
  bytes: ([offset, length]) => (isCount(offset) && isCount(length) ? { type: "bytes", offset, length } : undefined),
  search: ([pattern, limit, regex, ignoreCase]) =>
    isText(pattern) && isCount(limit)
      ? { type: "search", pattern, limit, regex: regex === true, ignoreCase: ignoreCase === true }
      : undefined,
};

function queryOf([type, ...fields]: Fields): ResultQuery | undefined {
  switch (type) {
    case "json":
    case "rows":
    case "lines":
    case "bytes":
    case "search":
      return QUERIES[type](fields);
    default:
      return undefined;
  }
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === "string";
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
