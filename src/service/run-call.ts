import type { ToolEvent, ToolResult, UpstreamExchange } from "../core/call.ts";
import type { Clock } from "../core/clock.ts";
import { cutError } from "../core/cut-error.ts";
import { GatewayError } from "../core/errors.ts";
import type { ToolRegistry } from "../core/registry.ts";
import { eventsUntil } from "../core/signal.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { CallRequestFacts } from "../wire/call-codec.ts";
import { type CallStats, type OutputEvent, withinMessage } from "../wire/result-codec.ts";
import { type CallContextDeps, openCall } from "./call-context.ts";
import type { Rpc } from "./rpc.ts";
import { TICK, withTicks } from "./ticks.ts";

/** Most exchanges an explanation holds: more than any number of attempts. */
const MAX_EXCHANGES = 32;
/** How long a tool may take to end by itself when its call was ended. More than the pipeline gives its adapter. */
const ABORT_GRACE_MS = 100;

/** What running calls takes. */
export interface CallDeps extends CallContextDeps {
  readonly registry: ToolRegistry;
  readonly clock: Clock;
}

/** The end of a call. */
export interface CallEnd {
  readonly type: "completed";
  /** The version of the tool that ran. */
  readonly tool: Pick<ToolDefinition, "name" | "contractDigest">;
  /** `undefined` where the call was only validated. */
  readonly result: ToolResult | undefined;
  readonly stats: CallStats;
  /** `undefined` unless an explanation was asked for. */
  readonly exchanges: readonly UpstreamExchange[] | undefined;
}

/** A call as its caller sees it: `started` first, `completed` last. */
export type CallEvent =
  | { readonly type: "started"; readonly callId: string; readonly deadlineMs: number }
  | { readonly type: "heartbeat" }
  | OutputEvent
  | CallEnd;

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
  yield { type: "started", callId, deadlineMs };
  const record = new CallRecord(request, definition, deps.clock);
  const events = eventsUntil(lease.run(opened.call, opened.context), rpc.signal, deps.clock, {
    graceMs: ABORT_GRACE_MS,
    cutError: () => cutError(definition, rpc.signal),
  });
  for await (const event of heartbeatMs === undefined ? events : withTicks(events, heartbeatMs, deps.clock)) {
    if (event === TICK) yield { type: "heartbeat" };
    else if (event.type === "exchange") record.add(event.exchange);
    else if (event.type === "completed") yield record.end(event);
    else yield event;
  }
  record.refuseEndless();
}

/** What is kept of a call while it runs. */
class CallRecord {
  readonly #startTimeMs: number;
  readonly #startedMs: number;
  readonly #request: CallRequestFacts;
  readonly #tool: ToolDefinition;
  readonly #clock: Clock;
  readonly #exchanges: UpstreamExchange[] = [];
  #ended = false;

  constructor(request: CallRequestFacts, tool: ToolDefinition, clock: Clock) {
    this.#request = request;
    this.#tool = tool;
    this.#clock = clock;
    this.#startTimeMs = clock.now();
    this.#startedMs = clock.monotonicMs();
  }

  add(exchange: UpstreamExchange): void {
    if (this.#request.explain && this.#exchanges.length < MAX_EXCHANGES) this.#exchanges.push(exchange);
  }

  /** @throws GatewayError RESULT_TOO_LARGE. */
  end({ result, effect, attempts }: Extract<ToolEvent, { type: "completed" }>): CallEnd {
    this.#ended = true;
    const totalMs = this.#clock.monotonicMs() - this.#startedMs;
    return {
      type: "completed",
      tool: this.#tool,
      result: this.#request.validateOnly ? undefined : withinMessage(result),
      stats: { startTimeMs: this.#startTimeMs, totalMs, attempts: this.#request.validateOnly ? 0 : attempts, effect },
      exchanges: this.#request.explain ? this.#exchanges : undefined,
    };
  }

  /** @throws GatewayError INTERNAL where the call came to no end. */
  refuseEndless(): void {
    if (this.#ended) return;
    throw new GatewayError("INTERNAL", "internal error", { cause: new Error("a call ended without a result") });
  }
}

function refuseChangedContract({ name, contractDigest }: ToolDefinition, pinned: string | undefined): void {
  if (pinned === undefined || pinned === contractDigest) return;
  throw new GatewayError(
    "CONTRACT_CHANGED",
    `the contract of tool \`${name}\` changed: its digest is ${contractDigest}, the call pins ${pinned}; read the tool again`,
    { metadata: { tool: name, contract_digest: contractDigest } },
  );
}
