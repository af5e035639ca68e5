import { type JsonValue, parseJson } from "../../core/json.ts";
import type { Principal } from "../../core/principal.ts";
import {
  KEPT_JSON,
  type KeptResult,
  queryInvalid,
  type ReadRequest,
  type ResultPage,
  type ResultQuery,
  type ResultReader,
  type ResultSource,
  type ResultStore,
} from "../../core/results.ts";
import type { Redactor } from "../../core/secrets.ts";
import { decodeCursor, encodeCursor, type Place } from "./cursor.ts";
import { readJson } from "./json-page.ts";
import { readLines } from "./line-page.ts";
import { readJsonRows, readTextRows } from "./row-page.ts";
import { searchJson, searchText } from "./search-page.ts";

/** Largest JSON that is taken apart; beyond it there are lines, bytes and search alone. */
const MAX_JSON_BYTES = 16 * 1024 * 1024;

/** Least and most characters of a page. */
const MIN_PAGE = 100;
const MAX_PAGE = 200_000;

interface Limits {
  readonly maxLength: number;
  readonly signal: AbortSignal;
}

type Page = Pick<ResultPage, "page"> & { readonly next: Place | undefined };

/** Reads kept results page by page. Pages are redacted once more, since a secret may have become known since. */
export function createResultReader(store: ResultStore, redactor: Redactor): ResultReader {
  return {
    async read(request: ReadRequest, principal: Principal, signal: AbortSignal): Promise<ResultPage> {
      const maxLength = Math.min(MAX_PAGE, Math.max(MIN_PAGE, request.maxLength));
      await using source = await store.open(request.handle, principal);
      const place = placeOf(request, source.facts);
      const { page, next } = await readPage(source, place, { maxLength, signal });
      return {
        facts: source.facts,
        page: page.type === "data" ? page : { ...page, text: redactor.text(page.text) },
        cursor: next === undefined ? undefined : encodeCursor(next),
      };
    },
  };
}

function placeOf({ query, cursor }: ReadRequest, facts: KeptResult): Place {
  if (cursor === undefined) return { query: query ?? suited(facts) };
  if (query !== undefined) throw queryInvalid("query", "must not stand beside `cursor`, which says what is read");
  return decodeCursor(cursor);
}

/** What suits a result, from its beginning. */
function suited(facts: KeptResult): ResultQuery {
  if (!isText(facts)) return { type: "bytes", offset: 0, length: 0 };
  return isJson(facts) ? { type: "json", path: "", offset: 0, limit: 0 } : { type: "lines", start: 1, count: 0 };
}

async function readPage(source: ResultSource, place: Place, limits: Limits): Promise<Page> {
  const { query, byte } = place;
  if (query.type === "bytes") return readBytes(source, query, limits.maxLength);
  if (!isText(source.facts)) throw queryInvalid("query", `must be bytes: the result is ${source.facts.mediaType}`);
  switch (query.type) {
    case "lines": {
      const { text, next } = await readLines(source, query, byte, limits);
      return { page: { type: "text", text }, next };
    }
    case "json":
      return readValue(await jsonOf(source), query, limits.maxLength);
    case "rows": {
      const { text, next } = isJson(source.facts)
        ? readJsonRows(await jsonOf(source), query, limits.maxLength)
        : await readTextRows(source, query, byte, limits);
      return { page: { type: "json", text }, next };
    }
    case "search":
      return search(source, byte === undefined ? { query } : { query, byte }, limits);
  }
}

function readValue(root: JsonValue, query: Extract<ResultQuery, { type: "json" }>, maxLength: number): Page {
  const { text, isJson: json, nextOffset } = readJson(root, query, maxLength);
  const next = nextOffset === undefined ? undefined : { query: { ...query, offset: nextOffset } };
  return { page: { type: json ? "json" : "text", text }, next };
}

async function search(
  source: ResultSource,
  place: Place & { readonly query: Extract<ResultQuery, { type: "search" }> },
  limits: Limits,
): Promise<Page> {
  const whole = isJson(source.facts) && source.facts.complete && source.facts.bytes <= MAX_JSON_BYTES;
  const { text, next } = whole
    ? searchJson(await jsonOf(source), place, limits.maxLength)
    : await searchText(source, place, limits);
  return { page: { type: "json", text }, next };
}

async function readBytes(
  source: ResultSource,
  query: Extract<ResultQuery, { type: "bytes" }>,
  maxLength: number,
): Promise<Page> {
  const length = query.length === 0 ? maxLength : Math.min(query.length, maxLength);
  const data = await source.read(query.offset, length);
  const offset = query.offset + data.byteLength;
  const left = query.length === 0 ? 0 : query.length - data.byteLength;
  const more = data.byteLength > 0 && offset < source.facts.bytes && (query.length === 0 || left > 0);
  return { page: { type: "data", data }, next: more ? { query: { ...query, offset, length: left } } : undefined };
}

/** The JSON value that is kept. @throws GatewayError RESULT_QUERY_INVALID where it is none, or too large. */
export async function jsonOf(source: ResultSource): Promise<JsonValue> {
  const { facts } = source;
  if (!isJson(facts))
    throw queryInvalid("query", `needs JSON, and the result is ${facts.mediaType}: read lines, or search`);
  if (!facts.complete)
    throw queryInvalid(
      "query",
      "needs the whole of a JSON value, of which only the beginning was kept: read lines or bytes, or search",
    );
  if (facts.bytes > MAX_JSON_BYTES) {
    throw queryInvalid(
      "query",
      `needs JSON of at most ${MAX_JSON_BYTES} bytes, and the result has ${facts.bytes}: read lines or bytes, or search`,
    );
  }
  try {
    return parseJson(Buffer.from(await source.read(0, facts.bytes)).toString("utf8"));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw queryInvalid("query", "needs JSON, and what the tool gave as JSON is broken: read lines, or search");
  }
}

/** Whether a result is kept as JSON. */
export function isJson({ mediaType }: KeptResult): boolean {
  return mediaType === KEPT_JSON || mediaType.endsWith("+json");
}

/** Whether a result is kept as text. */
export function isText({ mediaType }: KeptResult): boolean {
  return /^text\/|[/+](?:json|x-ndjson|xml|yaml|csv|javascript)$/.test(mediaType);
}
