import type { ToolEvent, ToolResult, UpstreamExchange } from "../core/call.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { CallRequestFacts } from "../wire/call-codec.ts";
import { type CallStats, type OutputEvent, withinMessage } from "../wire/result-codec.ts";

/** Most exchanges an explanation holds: more than any number of attempts. */
const MAX_EXCHANGES = 32;

/** The end of a call. */
export interface CallEnd {
  readonly type: "completed";
  /** The version of the tool that ran. */
  readonly tool: Pick<ToolDefinition, "name" | "contractDigest" | "kind">;
  /** `undefined` where the call was only validated. */
  readonly result: ToolResult | undefined;
  readonly stats: CallStats;
  /** `undefined` unless an explanation was asked for. */
  readonly exchanges: readonly UpstreamExchange[] | undefined;
}

/** What a call tells after it has started; `completed` last. */
export type CallOutput = { readonly type: "heartbeat" } | OutputEvent | CallEnd;

/** A call as its caller sees it: `started` first, `completed` last. */
export type CallEvent =
  | {
      readonly type: "started";
      readonly callId: string;
      readonly deadlineMs: number;
      /** How long a lost stream of it can be resumed; `undefined`: not at all. */
      readonly resumeWindowMs: number | undefined;
    }
  | CallOutput;

/** What is kept of a call while it runs. */
export class CallRecord {
  readonly startTimeMs: number;
  readonly startedMs: number;
  readonly #request: CallRequestFacts;
  readonly #tool: ToolDefinition;
  readonly #clock: Clock;
  readonly #exchanges: UpstreamExchange[] = [];
  #queuedMs = 0;
  #ended = false;

  constructor(request: CallRequestFacts, tool: ToolDefinition, clock: Clock) {
    this.#request = request;
    this.#tool = tool;
    this.#clock = clock;
    this.startTimeMs = clock.now();
    this.startedMs = clock.monotonicMs();
  }

  add(exchange: UpstreamExchange): void {
    if (this.#request.explain && this.#exchanges.length < MAX_EXCHANGES) this.#exchanges.push(exchange);
  }

  /** The call waited so long for its turn. */
  waited(ms: number): void {
    this.#queuedMs += ms;
  }

  /** @throws GatewayError RESULT_TOO_LARGE. */
  end({ result, effect, attempts, replayed = false }: Extract<ToolEvent, { type: "completed" }>): CallEnd {
    this.#ended = true;
    const { validateOnly, explain } = this.#request;
    const totalMs = this.#clock.monotonicMs() - this.startedMs;
    const times = { startTimeMs: this.startTimeMs, queuedMs: this.#queuedMs, totalMs };
    return {
      type: "completed",
      tool: this.#tool,
      result: validateOnly ? undefined : withinMessage(result),
      stats: { ...times, attempts: validateOnly ? 0 : attempts, effect, replayed },
      exchanges: explain ? this.#exchanges : undefined,
    };
  }

  /** The end of a call that this one joined, as this one's own. */
  joined(end: CallEnd): CallEnd {
    const totalMs = this.#clock.monotonicMs() - this.startedMs;
    return { ...end, stats: { ...end.stats, startTimeMs: this.startTimeMs, totalMs, replayed: true } };
  }

  /** @throws GatewayError INTERNAL where the call came to no end. */
  refuseEndless(): void {
    if (this.#ended) return;
    throw new GatewayError("INTERNAL", "internal error", { cause: new Error("a call ended without a result") });
  }
}
