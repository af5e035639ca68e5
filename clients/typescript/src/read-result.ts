import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import {
  type KeptResult,
  KeptResultSchema,
  type ReadRequest,
  ReadRequestSchema,
  type ReadResponse,
} from "./gen/toolgate/v1/result_service_pb.ts";
import { type JsonValue, parseExact } from "./json.ts";
import type { RequestOptions } from "./request.ts";

/** What to read of a kept result. */
export type ResultQuery =
  /** Part of a JSON value: `path` is a JSON pointer or dotted, `offset` the first entry of the list or object there. */
  | { readonly json: { readonly path?: string; readonly offset?: number; readonly limit?: number } }
  /** Rows of a list, of JSON lines or of a table. */
  | {
      readonly rows: {
        readonly path?: string;
        readonly columns?: readonly string[];
        readonly offset?: number;
        readonly limit?: number;
      };
    }
  /** Lines of a text; `start` counts from 1. */
  | { readonly lines: { readonly start?: number; readonly count?: number } }
  | { readonly bytes: { readonly offset?: number; readonly length?: number } }
  /** Places where a text or a regular expression (RE2 syntax) stands. */
  | {
      readonly search: {
        readonly pattern: string;
        readonly regex?: boolean;
        readonly ignoreCase?: boolean;
        readonly limit?: number;
      };
    };

/** How to read a kept result. */
export interface ReadResultOptions extends RequestOptions {
  /** Default: JSON from its top, text from its first line, anything else from its first byte. */
  readonly query?: ResultQuery | undefined;
  /** Of the page before, instead of a query: goes on after it. */
  readonly cursor?: string | undefined;
  /** Most characters of the page, 100 to 200,000. Default 20,000. */
  readonly maxLength?: number | undefined;
}

/** One page of a kept result. */
export interface ResultPage {
  /** Lines, or a part of a JSON text; the JSON text of `json`. Empty for bytes. */
  readonly text: string;
  /** A value, rows or matches; undefined: the page is text or bytes. */
  readonly json: JsonValue | undefined;
  readonly data: Uint8Array | undefined;
  /** For the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
  /** The tool it came from. */
  readonly tool: string;
  readonly mimeType: string;
  readonly sizeBytes: bigint;
  /** False where only the beginning of the result was kept. */
  readonly complete: boolean;
  readonly expireTime: Date | undefined;
}

/** The message that says what to read. */
export function readRequest(handle: string, { query, cursor, maxLength }: ReadResultOptions): ReadRequest {
  return create(ReadRequestSchema, {
    handle,
    cursor: cursor ?? "",
    maxLength: maxLength ?? 0,
    ...(query === undefined ? {} : { query: queryOf(query) }),
  });
}

function queryOf(query: ResultQuery): NonNullable<MessageInitShape<typeof ReadRequestSchema>["query"]> {
  if ("json" in query) return { case: "json", value: { ...query.json, offset: BigInt(query.json.offset ?? 0) } };
  if ("rows" in query) {
    const { columns = [], offset = 0, ...rest } = query.rows;
    return { case: "rows", value: { ...rest, columns: [...columns], offset: BigInt(offset) } };
  }
  if ("lines" in query) return { case: "lines", value: { ...query.lines, start: BigInt(query.lines.start ?? 1) } };
  if ("bytes" in query) return { case: "bytes", value: { ...query.bytes, offset: BigInt(query.bytes.offset ?? 0) } };
  return { case: "search", value: query.search };
}

/** The page in a response. */
export function pageOf({ page, cursor, result }: ReadResponse): ResultPage {
  return {
    text: page.case === "text" || page.case === "json" ? page.value : "",
    json: page.case === "json" ? parseExact(page.value) : undefined,
    data: page.case === "data" ? page.value : undefined,
    cursor: cursor === "" ? undefined : cursor,
    ...factsOf(result ?? create(KeptResultSchema)),
  };
}

function factsOf({ tool, mimeType, sizeBytes, complete, expireTime }: KeptResult) {
  return {
    tool,
    mimeType,
    sizeBytes,
    complete,
    expireTime: expireTime === undefined ? undefined : timestampDate(expireTime),
  };
}
