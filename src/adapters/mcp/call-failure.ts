import { SdkHttpError } from "@modelcontextprotocol/client";
import type { ToolFailure, UpstreamResult } from "../../core/call.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject, type JsonValue, ownValue, parseJson } from "../../core/json.ts";
import { rpcError } from "./server-link.ts";
import type { Session } from "./session.ts";
import type { StartFailure } from "./start-failure.ts";
import { StreamableLink } from "./streamable-link.ts";

/** Codes that servers give, by habit, for a session that they do not know. */
const SESSION_CODES: ReadonlySet<number> = new Set([-32_000, -32_001, -32_003, -32_004]);

/** Statuses with which a server refuses a request before it does anything for it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 406, 413, 415, 421, 429]);

/**
 * Whether the server has forgotten the session. By the specification it says so with 404; some say 400, with an error of
 * JSON-RPC or without. It never ran the request.
 */
export function isSessionLost({ error }: { readonly error: unknown }, { link }: Session): boolean {
  if (!(error instanceof SdkHttpError) || !(link instanceof StreamableLink) || link.session === undefined) return false;
  if (error.status === 404) return true;
  if (error.status !== 400) return false;
  const code = codeOf(error.data.text);
  return code === undefined || SESSION_CODES.has(code);
}

/** What a call comes to that the server refused by an HTTP status. */
export function refusedCall(
  error: SdkHttpError,
  facts: { readonly tool: string; readonly readOnly: boolean },
): UpstreamResult {
  const { status } = error;
  const effect: Effect = facts.readOnly || REFUSALS.has(status) ? "none" : "unknown";
  return { content: [], failure: failureFor(status, facts.tool), upstreamCode: status, effect };
}

function failureFor(status: number, tool: string): ToolFailure {
  if (status === 401 || status === 403) {
    const message = `${tool}: the server refuses the gateway's credential (HTTP ${status}); its operator must mend it`;
    return { reason: "UPSTREAM_UNAUTHORIZED", message, upstreamCode: status, retryable: false, upstreamFault: false };
  }
  const busy = status === 429;
  const message = busy
    ? `${tool}: the server asks to slow down (HTTP 429)`
    : `${tool}: the server answered HTTP ${status}`;
  return {
    reason: busy ? "UPSTREAM_RATE_LIMITED" : "UPSTREAM_STATUS",
    message,
    upstreamCode: status,
    retryable: busy || status >= 500,
    transient: busy || status >= 500,
    upstreamFault: status >= 500,
  };
}

/** The error of a call whose answer did not come. */
export function lostCall(lost: {
  readonly name: string;
  readonly effect: Effect;
  readonly sent: boolean;
  /** One line; goes on after the tool's name. */
  readonly why: string;
  readonly cause: unknown;
}): GatewayError {
  const { name, effect, sent, why, cause } = lost;
  const metadata = { tool: name };
  if (effect === "none") {
    const end = sent ? "" : "; the tool was not called";
    return new GatewayError("UPSTREAM_UNREACHABLE", `${name}: ${why}${end}`, { metadata, cause });
  }
  const text = `${name}: ${why}; it may have taken effect: find out before calling again`;
  return new GatewayError("UPSTREAM_ANSWER_LOST", text, { effect, metadata, cause });
}

/** The error of a call whose server is not there. `waitMs`: until it is tried again; 0 where that is not settled. */
export function notStarted(call: {
  readonly server: string;
  /** As its callers know it; empty: no tool was called. */
  readonly tool: string;
  readonly failure: StartFailure;
  readonly waitMs: number;
}): GatewayError {
  const { server, tool, failure, waitMs } = call;
  const called = tool === "" ? `${server}: it was not reached` : `${tool}: the tool was not called`;
  const below = failure.cause;
  if (below instanceof GatewayError && below.reason === "SECRET_MISSING") {
    return new GatewayError(below.reason, `${called}: ${below.message}`, {
      modelMessage: below.modelMessage,
      metadata: below.metadata,
      cause: below,
    });
  }
  const next = waitMs > 0 ? `; next attempt in ${Math.ceil(waitMs / 1_000)} s` : "";
  return new GatewayError("UPSTREAM_UNREACHABLE", `${called}, its server failed: ${failure.message}${next}`, {
    modelMessage: `${called}: its server cannot be reached now; nothing was changed`,
    metadata: { tool: tool === "" ? server : tool },
    cause: failure,
    ...(waitMs > 0 ? { retryAfterMs: Math.ceil(waitMs) } : {}),
  });
}

/** The error for an answer over the limit. */
export function tooLarge(name: string, limit: number, effect: Effect): GatewayError {
  return new GatewayError(
    "RESULT_TOO_LARGE",
    `${name}: the server's answer is larger than the limit of ${limit} bytes`,
    {
      effect,
      metadata: { tool: name, limit: String(limit) },
    },
  );
}

function codeOf(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  const error = isJsonObject(value) ? ownValue(value, "error") : undefined;
  return error === undefined ? undefined : rpcError(error).code;
}
