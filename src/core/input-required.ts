import type { ToolFailure } from "./call.ts";
import { GatewayError } from "./errors.ts";
import type { InputRequest } from "./input-request.ts";

/** Most characters of what a tool asks that stand in a failure's message. */
const MAX_ASKED = 500;

/** The failure of a call whose tool asked for input that its caller does not take. */
export function inputRequired(tool: string, requests: Iterable<InputRequest>): ToolFailure {
  const asked = [...requests].map(({ kind, message }) => `${kind}${message === "" ? "" : ` "${message}"`}`).join("; ");
  const short = asked.length > MAX_ASKED ? `${asked.slice(0, MAX_ASKED)}…` : asked;
  return {
    reason: "INPUT_REQUIRED",
    message: `${tool}: the tool asks for input that this caller does not give (${short}); call it with \`accepts_input\`, and answer what it asks`,
    upstreamCode: undefined,
    origin: "tool",
    retryable: false,
    upstreamFault: false,
  };
}

/** Why a state is refused: the same words whoever asks and whatever is the matter, so that nothing is told. */
export function unknownState(tool: string): GatewayError {
  return new GatewayError(
    "CONTINUATION_NOT_FOUND",
    `no call of tool \`${tool}\` by this caller waits for input under this state: it was answered, its time is over, or it never was; call the tool from the beginning`,
    { metadata: { tool } },
  );
}
