import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReadResponseSchema, ReadRequest as WireRequest } from "../../gen/toolgate/v1/result_service_pb.ts";
import type { ReadRequest, ResultPage, ResultQuery } from "../core/results.ts";
import { toTimestamp } from "./durations.ts";
import { optionalText, requestInvalid } from "./request-error.ts";

/** Longest handle, path, column and cursor, in UTF-16 units, and most columns. */
const MAX_HANDLE = 100;
const MAX_PATH = 2_000;
const MAX_CURSOR = 8_000;
const MAX_COLUMNS = 200;

const MIN_LENGTH = 100;
const MAX_LENGTH = 200_000;
const DEFAULT_LENGTH = 20_000;

/**
 * What to read.
 *
 * @throws GatewayError REQUEST_INVALID.
 */
export function decodeRead({ handle, query, cursor, maxLength }: WireRequest): ReadRequest {
  if (handle === "") throw requestInvalid("handle", "MISSING", "must name a result, got nothing");
  if (maxLength !== 0 && (maxLength < MIN_LENGTH || maxLength > MAX_LENGTH)) {
    const words = `must be from ${MIN_LENGTH} to ${MAX_LENGTH}, or 0 for ${DEFAULT_LENGTH}, got ${maxLength}`;
    throw requestInvalid("max_length", "OUT_OF_RANGE", words);
  }
  return {
    handle: optionalText("handle", handle, MAX_HANDLE) ?? "",
    query: decodeQuery(query),
    cursor: optionalText("cursor", cursor, MAX_CURSOR),
    maxLength: maxLength === 0 ? DEFAULT_LENGTH : maxLength,
  };
}

function decodeQuery(query: WireRequest["query"]): ResultQuery | undefined {
  switch (query.case) {
    case undefined:
      return undefined;
    case "json": {
      const { path, offset, limit } = query.value;
      return { type: "json", path: pathOf("json.path", path), offset: place("json.offset", offset), limit };
    }
    case "rows": {
      const { path, offset, limit, columns } = query.value;
      if (columns.length > MAX_COLUMNS)
        throw requestInvalid("rows.columns", "TOO_MANY", `may be at most ${MAX_COLUMNS}`);
      for (const column of columns) optionalText("rows.columns", column, MAX_PATH);
      const from = place("rows.offset", offset);
      return { type: "rows", path: pathOf("rows.path", path), columns: [...columns], offset: from, limit };
    }
    case "lines":
      return { type: "lines", start: Math.max(1, place("lines.start", query.value.start)), count: query.value.count };
    case "bytes":
      return { type: "bytes", offset: place("bytes.offset", query.value.offset), length: query.value.length };
    case "search": {
      const { pattern, regex, ignoreCase, limit } = query.value;
      return { type: "search", pattern, regex, ignoreCase, limit };
    }
  }
}

function pathOf(field: string, path: string): string {
  return optionalText(field, path, MAX_PATH) ?? "";
}

function place(field: string, value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw requestInvalid(field, "OUT_OF_RANGE", "is beyond any result");
  return Number(value);
}

/** A page as a message. */
export function encodePage({ facts, page, cursor }: ResultPage): MessageInitShape<typeof ReadResponseSchema> {
  return {
    page: encodePart(page),
    cursor: cursor ?? "",
    result: {
      tool: facts.tool,
      mimeType: facts.mediaType,
      sizeBytes: BigInt(facts.bytes),
      complete: facts.complete,
      expireTime: toTimestamp(facts.expireTimeMs),
    },
  };
}

function encodePart(page: ResultPage["page"]) {
  switch (page.type) {
    case "text":
      return { case: "text" as const, value: page.text };
    case "json":
      return { case: "json" as const, value: page.text };
    case "data":
      return { case: "data" as const, value: page.data };
  }
}
