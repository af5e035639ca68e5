import type { Effect } from "../core/effect.ts";
import { GatewayError } from "../core/errors.ts";

/** How many attempts an error says were made: 1 unless it was told otherwise. */
export function attemptsOf(error: GatewayError): number {
  return Number(error.metadata["attempts"] ?? 1);
}

/** The error of the last of several attempts as that of all: how many there were, and what they may have changed. */
export function afterAttempts(
  error: GatewayError,
  all: { readonly count: number; readonly effect: Effect; readonly words: string },
): GatewayError {
  return new GatewayError(error.reason, `${error.message}${all.words}`, {
    modelMessage: `${error.modelMessage}${all.words}`,
    effect: all.effect,
    retryable: error.retryable,
    violations: error.violations,
    metadata: { ...error.metadata, attempts: String(all.count) },
    cause: error.cause,
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  });
}
