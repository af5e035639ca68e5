import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";

/** The reason a signal aborted with, saying what the call may have changed by then. */
export function endedCall(reason: unknown, effect: Effect): GatewayError {
  const error = GatewayError.from(reason);
  if (effect === error.effect) return error;
  return new GatewayError(error.reason, error.message, {
    modelMessage: error.modelMessage,
    effect,
    // What may have been done already is not safe to do again.
    retryable: effect === "none" && error.retryable,
    violations: error.violations,
    metadata: error.metadata,
    cause: error,
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  });
}
