import type { Clock } from "../core/clock.ts";
import { cutError } from "../core/cut-error.ts";
import { GatewayError } from "../core/errors.ts";
import type { CallWatch, ShortCall } from "../core/observation.ts";
import type { ToolLease, ToolRegistry } from "../core/registry.ts";
import { eventsUntil } from "../core/signal.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { CallRequestFacts } from "../wire/call-codec.ts";
import { type CallContextDeps, openCall } from "./call-context.ts";
import { type CallEvent, CallRecord } from "./call-record.ts";
import type { Rpc } from "./rpc.ts";
import { TICK, withTicks } from "./ticks.ts";
import type { Turns } from "./turns.ts";

/** How long a tool may take to end by itself when its call was ended. More than the pipeline gives its adapter. */
export const ABORT_GRACE_MS = 100;

/** What running calls takes. */
export interface CallDeps extends CallContextDeps {
  readonly registry: ToolRegistry;
  readonly clock: Clock;
  readonly turns: Turns;
  /** Absent: nobody watches calls. */
  readonly watch?: CallWatch | undefined;
}

/**
 * Runs a call, with a heartbeat after each `heartbeatMs` of silence (`undefined`: none). Ends when the RPC's signal
 * aborts, even where the tool ignores it.
 *
 * @throws GatewayError, also for what the call met on its way.
 */
export async function* runCall(
  request: CallRequestFacts,
  heartbeatMs: number | undefined,
  rpc: Rpc,
  deps: CallDeps,
): AsyncGenerator<CallEvent, void, undefined> {
  using lease = leaseFor(request, rpc, deps);
  const { definition } = lease;
  using opened = openCall(request, definition, rpc, deps);
  const { callId, deadlineMs } = opened.context;
  yield { type: "started", callId, deadlineMs, resumeWindowMs: undefined };
  const record = new CallRecord(request, definition, deps.clock);
  const events = eventsUntil(lease.run(opened.call, opened.context), rpc.signal, deps.clock, {
    graceMs: ABORT_GRACE_MS,
    cutError: () => cutError(definition, rpc.signal),
  });
  for await (const event of heartbeatMs === undefined ? events : withTicks(events, heartbeatMs, deps.clock)) {
    const turn = deps.turns.next();
    if (turn !== undefined) await turn;
    if (event === TICK) yield { type: "heartbeat" };
    else if (event.type === "exchange") record.add(event.exchange);
    else if (event.type === "queue-leave") record.waited(event.waitedMs);
    else if (event.type === "completed") {
      yield record.end(event);
      // A reader that asks for more after the deadline is not to hear of it.
      return;
    } else yield event;
  }
  record.refuseEndless();
}

/** The tool that a request is for. A call that ends here is told to who watches. @throws GatewayError. */
export function leaseFor(request: CallRequestFacts, rpc: Rpc, { registry, watch }: CallDeps): ToolLease {
  try {
    const lease = registry.acquire(request.name, rpc.principal);
    try {
      refuseChangedContract(lease.definition, request.contractDigest);
      return lease;
    } catch (error) {
      lease[Symbol.dispose]();
      throw error;
    }
  } catch (thrown) {
    const error = GatewayError.from(thrown);
    watch?.short({ ...shortFacts(request, rpc), ...shortError(error) });
    throw error;
  }
}

/** Who asked for what. */
function shortFacts(request: CallRequestFacts, { principal }: Rpc) {
  const { name: tool, arguments: args, sessionId, turnId, taskId, toolCallId } = request;
  const ids = { sessionId, turnId, taskId, toolCallId };
  return { tool, callId: undefined, principal: principal.id, ...ids, arguments: args, ms: 0 };
}

/** How a call ended that was refused. */
export function shortError({
  reason,
  status,
  effect,
}: GatewayError): Pick<ShortCall, "outcome" | "reason" | "status" | "effect"> {
  return { outcome: "error", reason, status, effect };
}

/** @throws GatewayError CONTRACT_CHANGED where the caller pinned another contract than the tool has. */
function refuseChangedContract({ name, contractDigest }: ToolDefinition, pinned: string | undefined): void {
  if (pinned === undefined || pinned === contractDigest) return;
  throw new GatewayError(
    "CONTRACT_CHANGED",
    `the contract of tool \`${name}\` changed: its digest is ${contractDigest}, the call pins ${pinned}; read the tool again`,
    { metadata: { tool: name, contract_digest: contractDigest } },
  );
}
