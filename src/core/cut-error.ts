import { GatewayError } from "./errors.ts";
import type { ToolDefinition } from "./tool.ts";

/**
 * Why the signal ended a call of this tool, where nobody knows how far the call had come: unless the tool only reads,
 * it may have acted, and unless it may run twice, the same call is not to be repeated.
 */
export function cutError(tool: ToolDefinition, signal: AbortSignal): GatewayError {
  const reason = GatewayError.from(signal.reason);
  const readOnly = tool.hints.readOnly === true;
  return new GatewayError(reason.reason, reason.message, {
    modelMessage: reason.modelMessage,
    effect: readOnly ? "none" : "unknown",
    retryable: reason.retryable && (readOnly || tool.hints.idempotent === true),
    metadata: { ...reason.metadata, tool: tool.name },
    cause: reason.cause,
  });
}
