import type { ToolFailure, UpstreamResult } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import type { Effect } from "../../core/effect.ts";
import type { FailureReason } from "../../core/failures.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson } from "../../core/json.ts";
import type { Answer } from "./answer.ts";
import { type AnswerHead, headerOf } from "./exchange.ts";
import { isText, type MediaType } from "./media-type.ts";
import { isWebPage, oneLine, pageTitle } from "./page-title.ts";
import { decodeText } from "./text-decoding.ts";
import { UnreadableAnswer } from "./unreadable-answer.ts";

/** As much of an error page is looked at. */
export const MAX_FAILURE_BYTES = 64 * 1024;

/** Most characters of the upstream's own words. */
const MAX_WORDS = 500;

/** Statuses after which the same request may work later. */
const TRANSIENT = new Set([408, 425, 429, 500, 502, 503, 504]);

/** The tool's failure for an answer whose status is no success. `body`: its beginning, decoded. */
export function statusFailure(answer: Answer, body: Buffer, clock: Clock): UpstreamResult {
  const { status } = answer.head;
  const words = upstreamWords(body, answer.media);
  const transient = TRANSIENT.has(status);
  const retryAfterMs = transient ? waitAskedFor(answer.head, clock) : undefined;
  const failure: ToolFailure = {
    reason: reasonOf(status),
    message: `${headline(answer)}${words === "" ? "" : `: ${words}`}${waitHint(retryAfterMs)}`,
    upstreamCode: status,
    // What may have been done already is not safe to do again.
    retryable: transient && answer.effect !== "unknown",
    transient,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    upstreamFault: status >= 500 || status === 408,
  };
  return { content: [], failure, upstreamCode: status, effect: answer.effect };
}

/** The tool's failure for an answer that cannot be read. */
export function unreadableFailure({ config, head, effect }: Answer, problem: UnreadableAnswer): UpstreamResult {
  const failure: ToolFailure = {
    reason: "UPSTREAM_BAD_RESPONSE",
    message: `${config.tool.name}: the upstream's answer (HTTP ${head.status}) cannot be read: ${problem.message}`,
    upstreamCode: head.status,
    retryable: false,
    upstreamFault: true,
  };
  return { content: [], failure, upstreamCode: head.status, effect };
}

/** What an answer with this status says about effects: who refuses has not acted, who breaks down may have. */
export function effectOf(status: number, readOnly: boolean): Effect {
  if (readOnly) return "none";
  if (status < 300) return "committed";
  if (status === 304 || status === 307 || status === 308 || (status >= 400 && status < 500) || status === 501)
    return "none";
  return "unknown";
}

function reasonOf(status: number): FailureReason {
  if (status === 401 || status === 403) return "UPSTREAM_UNAUTHORIZED";
  return status === 429 ? "UPSTREAM_RATE_LIMITED" : "UPSTREAM_STATUS";
}

function headline({ config, head, redirectRefused }: Answer): string {
  const { name } = config.tool;
  const { status } = head;
  if (status === 401 || status === 403)
    return `${name}: the upstream refused the gateway's credential (HTTP ${status})`;
  if (status === 407) return `${name}: the proxy refused the gateway's credential (HTTP 407)`;
  if (status === 429) return `${name}: the upstream asks to slow down (HTTP 429)`;
  if (redirectRefused !== undefined) return `${name}: the upstream ${redirectRefused}`;
  return `${name}: the upstream answered HTTP ${status}`;
}

/**
 * The wait that an answer asks for, as seconds or as a date; `undefined` where it asks for none that can be read.
 * Source: RFC 9110, 10.2.3.
 */
function waitAskedFor(head: AnswerHead, clock: Clock): number | undefined {
  const retryAfter = headerOf(head, "retry-after")?.trim();
  if (retryAfter === undefined) return undefined;
  if (/^\d{1,10}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  // A date begins with the name of its day; whatever else there is, such as -1 or 1.5, JavaScript takes for a year.
  const waitMs = /^[A-Za-z]/.test(retryAfter) ? Date.parse(retryAfter) - clock.now() : Number.NaN;
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs);
}

function waitHint(waitMs: number | undefined): string {
  return waitMs === undefined ? "" : `; retry after ${Math.ceil(waitMs / 1_000)} s`;
}

/** The upstream's own words about what is wrong, in one line; empty where there are none for people. */
function upstreamWords(body: Buffer, media: MediaType): string {
  if (body.length === 0 || isText(media) === false) return "";
  const text = textOf(body, media);
  if (isWebPage(text, media)) return pageTitle(text);
  const value = parsed(text);
  if (value !== undefined) return oneLine(messageIn(value) ?? "", MAX_WORDS);
  return media.name === "text/plain" ? oneLine(text, MAX_WORDS) : "";
}

function textOf(body: Buffer, media: MediaType): string {
  try {
    return decodeText(body, media.charset);
  } catch (error) {
    // The status says enough: an odd charset must not hide it.
    if (error instanceof UnreadableAnswer) return "";
    throw error;
  }
}

function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The field in which APIs put their words: their own envelope, or RFC 9457's. */
function messageIn(value: JsonValue): string | undefined {
  if (typeof value === "string") return value;
  const first = isJsonArray(value) ? value[0] : value;
  return isJsonObject(first) ? fieldIn(first) : undefined;
}

function fieldIn(object: JsonObject): string | undefined {
  for (const name of ["message", "error_description", "error", "errors", "detail", "title"]) {
    const value = ownValue(object, name);
    const found = value === undefined || value === null ? undefined : messageIn(value);
    if (found !== undefined && found.trim() !== "") return found;
  }
  return undefined;
}
