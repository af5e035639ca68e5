import { GatewayError } from "../../core/errors.ts";
import type { SlotRefusal } from "../../core/slots.ts";

/** The error for a call that got no connection since others have them all. Nothing was sent. */
export function poolExhausted(
  { tool, origin, connectMs }: { readonly tool: string; readonly origin: string; readonly connectMs: number },
  { why, position, limits }: SlotRefusal,
): GatewayError {
  const busy = `all ${limits.limit} connections to ${origin} are in use (pool.max_connections)`;
  const end =
    why === "full"
      ? `and ${limits.maxWaiting} calls wait already (pool.max_waiting)`
      : `and none came free within ${connectMs} ms (timeout.connect), at place ${position} of the line`;
  return new GatewayError("UPSTREAM_POOL_EXHAUSTED", `${tool}: ${busy}, ${end}`, {
    modelMessage: `${tool}: too many calls to its upstream run at the moment; nothing was sent, call again later`,
    metadata: { tool, limit: why === "full" ? "max_waiting" : "connect", max_connections: String(limits.limit) },
  });
}
