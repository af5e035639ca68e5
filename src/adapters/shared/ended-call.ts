import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";

/**
 * The reason a signal aborted with, saying what the call may have changed by then.
 *
 * @param phase what a call was at when its time was over, such as `connect`, for the metadata.
 */
export function endedCall(reason: unknown, effect: Effect, phase?: string): GatewayError {
  const error = GatewayError.from(reason);
  const at = error.reason === "CALL_DEADLINE_EXCEEDED" ? phase : undefined;
  if (effect === error.effect && at === undefined) return error;
  return new GatewayError(error.reason, error.message, {
    modelMessage: error.modelMessage,
    effect,
    // What may have been done already is not safe to do again.
    retryable: effect === "none" && error.retryable,
    violations: error.violations,
    metadata: at === undefined ? error.metadata : { ...error.metadata, phase: at },
    cause: error,
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  });
}
