import type { Clock } from "../core/clock.ts";
import { cutError } from "../core/cut-error.ts";
import { GatewayError } from "../core/errors.ts";
import type { ToolRegistry } from "../core/registry.ts";
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
  using lease = deps.registry.acquire(request.name, rpc.principal);
  const { definition } = lease;
  refuseChangedContract(definition, request.contractDigest);
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

/** @throws GatewayError CONTRACT_CHANGED where the caller pinned another contract than the tool has. */
export function refuseChangedContract({ name, contractDigest }: ToolDefinition, pinned: string | undefined): void {
  if (pinned === undefined || pinned === contractDigest) return;
  throw new GatewayError(
    "CONTRACT_CHANGED",
    `the contract of tool \`${name}\` changed: its digest is ${contractDigest}, the call pins ${pinned}; read the tool again`,
    { metadata: { tool: name, contract_digest: contractDigest } },
  );
}
