import type { ToolEvent, UpstreamResult } from "../core/call.ts";
import type { GatewayError } from "../core/errors.ts";

/** What came of a call or an attempt. */
export interface Outcome {
  readonly word: "ok" | "failure" | "needs-input" | "error" | "left";
  /** Of an error or a failure. */
  readonly reason?: string;
  /** Status of the RPC. */
  readonly status: string;
}

/** Nobody waited for the end. */
export const LEFT: Outcome = { word: "left", status: "CANCELLED" };

/** Of an error. */
export function errorOutcome({ reason, status }: GatewayError): Outcome {
  return { word: "error", reason, status };
}

/** Of a result. */
export function resultOutcome({
  failure,
  needsInput,
}: Pick<Extract<ToolEvent, { type: "completed" }>["result"], "failure" | "needsInput"> | UpstreamResult): Outcome {
  if (failure !== undefined) return { word: "failure", reason: failure.reason, status: "OK" };
  return { word: needsInput === undefined ? "ok" : "needs-input", status: "OK" };
}
