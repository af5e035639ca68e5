import { GatewayError } from "../core/errors.ts";
import { requestInvalid } from "../wire/request-error.ts";

/** For a call that is not there, and for one of another caller. */
export function callNotFound(callId: string): GatewayError {
  return new GatewayError(
    "CALL_NOT_FOUND",
    `no streamed call \`${callId}\` that can be resumed is known for this caller`,
    {
      effect: "unknown",
      metadata: { call_id: callId },
    },
  );
}

/** For a call that was kept and is not any more, or not as far back. */
export function resumeExpired(callId: string): GatewayError {
  return new GatewayError(
    "RESUME_EXPIRED",
    `call \`${callId}\` can no longer be resumed from there; call again with the same \`request_id\` for its outcome`,
    { effect: "unknown", metadata: { call_id: callId } },
  );
}

/** Why a call ends whose caller lost its connection and did not come back. */
export function notResumed(windowMs: number): GatewayError {
  return new GatewayError("CALL_CANCELLED", `the caller's connection was lost and not resumed within ${windowMs} ms`);
}

/** For a message that the stream has not come to yet. */
export function beyondStream(lastSequence: number): GatewayError {
  const what = `must be a sequence that was received, got one after the last, which is ${lastSequence}`;
  return requestInvalid("resume.after_sequence", "OUT_OF_RANGE", what);
}
