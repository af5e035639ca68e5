import { errors } from "undici";
import type { AttemptTimeouts } from "../../core/adapter.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import { codeOf, connectProblem } from "./network/connect-problem.ts";
import { EGRESS_DENIED, PRIVATE_ADDRESS } from "./network/egress.ts";

/** The limits of time an exchange watches. */
export type TimeLimit = "connect" | "read" | "idle";

/** A call that ends without a complete answer. */
export interface LostCall {
  readonly tool: string;
  readonly origin: string;
  /** What it may have changed. */
  readonly effect: Effect;
  /** How far it came: no connection yet, sent, or within the answer. */
  readonly phase: "connecting" | "waiting" | "answering";
  /** Of the body. */
  readonly receivedBytes: number;
  readonly timeouts: AttemptTimeouts;
}

const DO_NOT_REPEAT = "the request may have taken effect: find out before calling again";

/** The error for a limit of time that was spent. */
export function spentLimit(call: LostCall, limit: TimeLimit): GatewayError {
  const limitMs = call.timeouts[`${limit}Ms`];
  const what = {
    connect: "had no connection",
    read: "did not begin to answer",
    idle: "stopped in the middle of its answer",
  }[limit];
  const end = call.effect === "unknown" ? `; ${DO_NOT_REPEAT}` : "";
  return new GatewayError(
    "UPSTREAM_TIMEOUT",
    `${call.tool}: ${call.origin} ${what} for ${limitMs} ms (timeout.${limit})${end}`,
    {
      modelMessage: `${call.tool}: the upstream ${what} for ${limitMs} ms (timeout.${limit})${end}`,
      effect: call.effect,
      // What may have been done already is not safe to do again.
      retryable: call.effect === "none",
      metadata: { tool: call.tool, limit },
    },
  );
}

/** The error for a connection that could not be made, or broke. */
export function brokenConnection(call: LostCall, cause: Error | undefined): GatewayError {
  if (isOwnFault(cause)) return new GatewayError("INTERNAL", "internal error", { cause });
  const why = describe(call, cause);
  const metadata = {
    tool: call.tool,
    code: codeOf(cause) ?? "CUT_SHORT",
    phase: call.phase,
  };
  if (call.effect === "none") {
    return new GatewayError("UPSTREAM_UNREACHABLE", `${call.tool}: ${why.full}`, {
      modelMessage: `${call.tool}: ${why.brief}; nothing was changed`,
      metadata,
      cause,
      // It takes a change of the declaration or of the gateway's settings.
      ...([PRIVATE_ADDRESS, EGRESS_DENIED].includes(metadata.code) ? { retryable: false } : {}),
    });
  }
  return new GatewayError("UPSTREAM_ANSWER_LOST", `${call.tool}: ${why.full}; ${DO_NOT_REPEAT}`, {
    modelMessage: `${call.tool}: ${why.brief}; ${DO_NOT_REPEAT}`,
    effect: call.effect,
    metadata,
    cause,
  });
}

function describe(call: LostCall, cause: Error | undefined): { readonly full: string; readonly brief: string } {
  const code = codeOf(cause);
  const detail = code === undefined ? "" : ` (${code})`;
  if (call.phase === "connecting") {
    const brief = "the upstream cannot be reached";
    return { full: `no connection to ${call.origin}: ${connectProblem(cause)}`, brief };
  }
  if (cause instanceof errors.HTTPParserError || cause instanceof errors.HeadersOverflowError) {
    return {
      full: `${call.origin} sent what is not HTTP/1.1 or has too large headers${detail}`,
      brief: "the upstream's answer is not HTTP",
    };
  }
  if (call.phase === "waiting") {
    return {
      full: `${call.origin} closed the connection before it answered${detail}`,
      brief: "the upstream closed the connection before it answered",
    };
  }
  const cut = `the answer was cut short after ${call.receivedBytes} bytes of its body`;
  return { full: `${cut}: ${call.origin} closed the connection${detail}`, brief: cut };
}

/** A request that undici would not even take is a fault of the one who made it. */
function isOwnFault(cause: Error | undefined): boolean {
  return cause instanceof errors.InvalidArgumentError || cause instanceof errors.NotSupportedError;
}
