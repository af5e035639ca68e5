import { GatewayError } from "./errors.ts";
import type { JsonValue } from "./json.ts";
import type { Principal } from "./principal.ts";

/** What a handle looks like: nobody can guess one, and nothing of what it names stands in it. */
const HANDLE = /^result:\/\/([A-Za-z0-9_-]{24})$/;

/** The handle of an id. */
export function handleOf(id: string): string {
  return `result://${id}`;
}

/** The id in a handle; undefined where the text is none. */
export function idOfHandle(text: string): string | undefined {
  return HANDLE.exec(text)?.[1];
}

/** Media type of JSON that is kept. */
export const KEPT_JSON = "application/json";

/** Media type of a text of which no more is known. */
export const KEPT_TEXT = "text/plain";

/** What is known of a result that is kept. */
export interface KeptResult {
  /** 24 characters from a random source. */
  readonly id: string;
  /** Id of the only principal that may read it. */
  readonly principal: string;
  readonly tool: string;
  readonly mediaType: string;
  readonly bytes: number;
  /** Whether all of the result is kept, and not only its beginning. */
  readonly complete: boolean;
  /** Milliseconds since the epoch. */
  readonly createTimeMs: number;
  /** Milliseconds since the epoch. */
  readonly expireTimeMs: number;
}

/** Whose a result is and where it came from. */
export type ResultOrigin = Pick<KeptResult, "principal" | "tool" | "mediaType">;

/** Outcome of keeping a result. */
export type KeepOutcome =
  | { readonly ok: true; readonly kept: KeptResult }
  /** One line for the caller; holds no path. */
  | { readonly ok: false; readonly problem: string };

/** A result on its way to the disk, one write at a time. Disposing forgets it, unless it was finished. Nothing of it throws. */
export interface ResultWriter extends AsyncDisposable {
  readonly handle: string;
  /** Takes the next bytes. False: there is room for no more, or they cannot be written; what is there can be finished. */
  write(bytes: Uint8Array): Promise<boolean>;
  /** From now on it can be read. `complete`: nothing is missing at its end. */
  finish(complete: boolean): Promise<KeepOutcome>;
}

/** A result that is kept, open to be read. */
export interface ResultSource extends AsyncDisposable {
  readonly facts: KeptResult;
  /** The bytes there are in that range. @throws GatewayError RESULT_GONE where they are damaged. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** Keeps results on disk for a while, within bounds for each principal and for all. */
export interface ResultStore extends AsyncDisposable {
  /** Begins to keep a result. Never throws: what goes wrong shows in the outcome. */
  create(origin: ResultOrigin): ResultWriter;
  /** @throws GatewayError RESULT_NOT_FOUND, the same for what is not there and what is another's; RESULT_GONE. */
  open(handle: string, principal: Principal): Promise<ResultSource>;
}

/** What to read of a result. Numbers are whole and not below 0. */
export type ResultQuery =
  | { readonly type: "json"; readonly path: string; readonly offset: number; readonly limit: number }
  | {
      readonly type: "rows";
      readonly path: string;
      readonly columns: readonly string[];
      readonly offset: number;
      readonly limit: number;
    }
  /** `start` counts from 1. */
  | { readonly type: "lines"; readonly start: number; readonly count: number }
  | { readonly type: "bytes"; readonly offset: number; readonly length: number }
  | {
      readonly type: "search";
      readonly pattern: string;
      readonly regex: boolean;
      readonly ignoreCase: boolean;
      readonly limit: number;
    };

/** A request for one page. */
export interface ReadRequest {
  readonly handle: string;
  /** Absent: what suits the result, from its beginning. */
  readonly query?: ResultQuery | undefined;
  /** Of an earlier page, instead of a query. */
  readonly cursor?: string | undefined;
  /** Most characters of the page; for bytes, most bytes. */
  readonly maxLength: number;
}

/** One page of a result. */
export interface ResultPage {
  readonly facts: KeptResult;
  readonly page:
    | { readonly type: "text"; readonly text: string }
    /** JSON text. */
    | { readonly type: "json"; readonly text: string }
    | { readonly type: "data"; readonly data: Uint8Array };
  /** For the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/** Pages of kept results, each bounded in output and work. */
export interface ResultReader {
  /**
   * @throws GatewayError RESULT_NOT_FOUND, RESULT_GONE; RESULT_QUERY_INVALID where the query does not fit the result; the
   * signal's reason.
   */
  read(request: ReadRequest, principal: Principal, signal: AbortSignal): Promise<ResultPage>;
}

/** What a call's result may be kept by. */
export interface ResultKeeping {
  readonly handle: string;
  /** Settles when it is on disk, or is known not to be. Never rejects. */
  readonly done: Promise<KeepOutcome>;
}

/** Keeps one whole result of a call, redacted already. */
export type KeepResult = (mediaType: string, content: string | Uint8Array) => ResultKeeping;

/** Takes an answer that is too large for memory, redacting it as text where it is that. */
export interface Overflow extends AsyncDisposable {
  /** As {@link ResultWriter.write}. */
  write(piece: Uint8Array): Promise<boolean>;
  finish(complete: boolean): Promise<KeepOutcome>;
}

/** Opens an overflow. `charset`: of a text; undefined: the bytes are no text. */
export type OpenOverflow = (mediaType: string, charset: string | undefined) => Overflow;

/** The answer to a handle that names nothing the principal may read, whatever the cause. */
export function resultNotFound(handle: string): GatewayError {
  const message = `no result ${handle.slice(0, 60)} is kept for this caller; use a handle as it came, as the same caller`;
  return new GatewayError("RESULT_NOT_FOUND", message);
}

/** The answer to a handle of the principal's own whose result is no longer there. */
export function resultGone(handle: string, tool: string, why: string): GatewayError {
  const message = `the result ${handle} of tool "${tool}" is gone: ${why}; call "${tool}" again with the same arguments for a new one`;
  return new GatewayError("RESULT_GONE", message, { metadata: { tool } });
}

/** What is wrong with a query. `field`: path of the field, such as `rows.columns`. */
export function queryInvalid(field: string, description: string): GatewayError {
  return new GatewayError("RESULT_QUERY_INVALID", `\`${field}\` ${description}`, {
    violations: [{ field, reason: "INVALID", description }],
    metadata: { field },
  });
}

/** Finds what a handle in an argument stands for. */
export interface HandleValues {
  /**
   * The value of a kept result: JSON as it is, or what a pointer in it leads to; a text as a string.
   *
   * @throws GatewayError RESULT_NOT_FOUND, RESULT_GONE; RESULT_QUERY_INVALID where there is no such value, or one that is
   * too large; the signal's reason.
   */
  value(handle: string, pointer: string, principal: Principal, signal: AbortSignal): Promise<JsonValue>;
}

/** The handle and the JSON pointer of `result://ID` or `result://ID#/pointer`; undefined where the text is neither. */
export function handleReference(text: string): { readonly handle: string; readonly pointer: string } | undefined {
  const [handle = "", ...rest] = text.split("#");
  const pointer = rest.join("#");
  const isReference = idOfHandle(handle) !== undefined && (pointer === "" || pointer.startsWith("/"));
  return isReference ? { handle, pointer } : undefined;
}
