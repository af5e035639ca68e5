import type { ToolPolicy } from "../../src/core/step.ts";
import type { ToolDefinition } from "../../src/core/tool.ts";

/** How an attempt goes on after its request went out. */
export type AttemptEnd =
  | "ok"
  | "unavailable"
  | "rate-limited"
  | "refused"
  | "lost"
  | "timeout"
  | "unreachable"
  | "no-connection"
  | "hang"
  | "breaks"
  | "endless";

/** What an upstream tends to do. */
export interface Temper {
  /** Shares of the ends other than `ok`. */
  readonly faults: readonly (readonly [end: AttemptEnd, share: number])[];
  readonly latencyMs: readonly [least: number, most: number];
  /** Share of attempts that take no notice of their signal. */
  readonly deaf: number;
  /** Most pieces of a stream. */
  readonly pieces: number;
}

/** A tool with its policies. */
export interface SimulatedTool {
  readonly definition: ToolDefinition;
  readonly policy: ToolPolicy;
  readonly temper: Temper;
  /** Name of the parameter that takes the key. */
  readonly idempotencyField: string | undefined;
}

/** How a caller parts from its stream. */
export interface Leaving {
  /** `cancel`: asked for. `lose`: its connection broke. `stop`: it reads no more, and the transport tells why later. */
  readonly how: "cancel" | "lose" | "stop";
  /** After it began. */
  readonly afterMs: number;
  /** When it comes back, where it can; absent: never. Negative: so long before it leaves, on another connection. */
  readonly backAfterMs: number | undefined;
}

/** A caller and its one call. */
export interface SimulatedCaller {
  readonly atMs: number;
  readonly tool: string;
  readonly principal: string;
  readonly requestId: string | undefined;
  /** Value of the call's argument. */
  readonly n: number;
  readonly streams: boolean;
  readonly timeoutMs: number | undefined;
  readonly rpcTimeoutMs: number | undefined;
  readonly resumeWindowMs: number | undefined;
  readonly heartbeatMs: number | undefined;
  /** Pause after each message. */
  readonly pauseMs: number;
  readonly leaving: Leaving | undefined;
}

/** Everything that happens from outside in one schedule. */
export interface Scenario {
  readonly seed: number;
  readonly tools: readonly SimulatedTool[];
  readonly callers: readonly SimulatedCaller[];
  /** Share of the ledger store's operations that fail, and their longest time. */
  readonly ledger: { readonly failing: number; readonly slowestMs: number };
  /** Of one call's output. */
  readonly kept: { readonly memoryBytes: number; readonly diskBytes: number; readonly streams: number };
  /** Share of answers for which a part of the gateway breaks that stands outside of the ledger, and says "none". */
  readonly lies: number;
}
