import type { EffectClass, ToolPolicy } from "../../src/core/step.ts";
import type { ToolDefinition } from "../../src/core/tool.ts";
import type { Dice } from "./dice.ts";
import type { Scenario, SimulatedCaller, Temper } from "./scenario-parts.ts";

/** What a kind of schedule holds fast, so that much of one thing happens in it. */
export interface Density {
  /** Most tools. */
  readonly tools: number;
  readonly callers: number;
  /** Time in which all of them come. */
  readonly spanMs: number;
  readonly lies?: number;
  readonly kept?: Scenario["kept"];
  tool(dice: Dice): ToolChoice;
  caller(dice: Dice): Partial<SimulatedCaller>;
}

/** What is not left to chance of a tool; it has no limits but those named here. */
export interface ToolChoice {
  readonly effectClass?: EffectClass;
  readonly delivery?: ToolDefinition["delivery"];
  readonly policy?: Partial<ToolPolicy>;
  readonly temper?: Partial<Temper>;
}

/** A caller that makes its call and waits for the end of it. */
const PATIENT = {
  requestId: undefined,
  n: 1,
  timeoutMs: undefined,
  rpcTimeoutMs: undefined,
  resumeWindowMs: undefined,
  heartbeatMs: undefined,
  pauseMs: 0,
  leaving: undefined,
} as const satisfies Partial<SimulatedCaller>;

/** Upstreams that say "not now", and when; budgets that run out. */
const RETRIES: Density = {
  tools: 2,
  callers: 40,
  spanMs: 4_000,
  tool: (dice) => ({
    policy: {
      upstream: "http://127.0.0.1:1",
      retry: {
        maxRetries: dice.oneOf([1, 3, 8]),
        backoff: dice.oneOf(["exponential", "linear", "fixed"]),
        initialBackoffMs: dice.oneOf([1, 20]),
        maxBackoffMs: dice.oneOf([100, 700, 10_000]),
        budget: dice.oneOf([0.01, 0.2, 1]),
      },
    },
    temper: {
      faults: [
        ["rate-limited", dice.oneOf([0.2, 0.8])],
        ["lost", 0.1],
      ],
    },
  }),
  caller: () => PATIENT,
};

/** Slow answers with others beside them, for tools that read and for those that do not. */
const HEDGES: Density = {
  tools: 3,
  callers: 20,
  spanMs: 2_000,
  tool: (dice) => ({
    delivery: "conclusive",
    policy: { hedge: { after: { ms: dice.oneOf([5, 20]) }, max: dice.between(1, 3) } },
    temper: { latencyMs: [1, 500], faults: [["lost", dice.oneOf([0, 0.2])]], deaf: dice.oneOf([0, 0.2]) },
  }),
  caller: () => PATIENT,
};

/** Upstreams that are down for a while, with callers that come all the time and wait in line. */
const OUTAGES: Density = {
  tools: 2,
  callers: 60,
  spanMs: 5_000,
  tool: (dice) => ({
    policy: {
      upstream: "http://127.0.0.1:1",
      concurrencyLimit: dice.oneOf([undefined, 1, 2]),
      queue: { maxLength: 100, maxWaitMs: 30_000 },
      retry: { maxRetries: 0, backoff: "fixed", initialBackoffMs: 1, maxBackoffMs: 1, budget: 1 },
      circuitBreaker: {
        failureThreshold: dice.oneOf([1, 3]),
        resetTimeoutMs: dice.oneOf([50, 500]),
        scope: dice.oneOf(["tool", "upstream"]),
      },
    },
    temper: {
      latencyMs: [20, 400],
      faults: [[dice.oneOf(["unavailable", "lost", "timeout"]), dice.oneOf([0.5, 0.9])]],
    },
  }),
  caller: (dice) => ({
    ...PATIENT,
    leaving: dice.chance(0.2) ? { how: "cancel", afterMs: dice.between(0, 300), backAfterMs: undefined } : undefined,
  }),
};

/** Long lines, with callers that read slowly and go while they wait, or just when they have their turn. */
const LINES: Density = {
  tools: 2,
  callers: 30,
  spanMs: 500,
  tool: (dice) => ({
    policy: {
      concurrencyLimit: dice.oneOf([1, 2]),
      group: dice.oneOf([undefined, { name: "g", maxParallelCalls: 2, rateLimit: undefined }]),
      queue: { maxLength: dice.oneOf([5, 100]), maxWaitMs: dice.oneOf([50, 30_000]) },
    },
    temper: { latencyMs: [1, 40] },
  }),
  caller: (dice) => ({
    ...PATIENT,
    streams: true,
    pauseMs: dice.oneOf([0, 30, 200, 700]),
    leaving: dice.chance(0.5)
      ? { how: dice.oneOf(["cancel", "lose", "stop"]), afterMs: dice.between(0, 800), backAfterMs: undefined }
      : undefined,
  }),
};

/** Few keys for many calls, of which many come at once, of tools that do not always answer. */
const KEYS: Density = {
  tools: 2,
  callers: 30,
  spanMs: 3_000,
  lies: 0.1,
  tool: (dice) => ({
    effectClass: dice.oneOf(["write", "write", "keyed", "idempotent", "read"]),
    policy: {
      retry: {
        maxRetries: dice.oneOf([0, 2]),
        backoff: "fixed",
        initialBackoffMs: 10,
        maxBackoffMs: 10_000,
        budget: 1,
      },
    },
    temper: {
      latencyMs: [1, 300],
      faults: [
        ["lost", dice.oneOf([0, 0.3])],
        ["rate-limited", dice.oneOf([0, 0.3])],
      ],
      deaf: dice.oneOf([0, 0.2]),
    },
  }),
  caller: (dice) => ({
    ...PATIENT,
    requestId: `k${dice.between(0, 3)}`,
    n: dice.chance(0.8) ? 1 : 2,
    leaving: dice.chance(0.2)
      ? { how: dice.oneOf(["cancel", "lose"]), afterMs: dice.between(0, 300), backAfterMs: undefined }
      : undefined,
  }),
};

/** Streams that are lost and taken up again, of more text than is kept in memory. */
const STREAMS: Density = {
  tools: 1,
  callers: 15,
  spanMs: 2_000,
  kept: { memoryBytes: 200, diskBytes: 700, streams: 100 },
  tool: (dice) => ({
    delivery: "incremental",
    temper: { latencyMs: [1, 100], faults: [["lost", dice.oneOf([0, 0.2])]], pieces: dice.oneOf([6, 60]) },
  }),
  caller: (dice) => ({
    ...PATIENT,
    streams: true,
    requestId: dice.oneOf([undefined, `k${dice.between(0, 2)}`]),
    resumeWindowMs: 20_000,
    pauseMs: dice.oneOf([0, 30]),
    leaving: {
      how: "lose",
      afterMs: dice.oneOf([dice.between(1, 1_000), 6_000]),
      backAfterMs: dice.oneOf([0, 50, 3_000, -20, -4_000]),
    },
  }),
};

const DENSITIES = [RETRIES, HEDGES, OUTAGES, LINES, KEYS, STREAMS];

/** Two of five seeds are of a kind, each kind in its turn. */
export function densityOf(seed: number): Density | undefined {
  const nth = [0, undefined, 1, undefined, undefined][seed % 5];
  return nth === undefined ? undefined : DENSITIES[(Math.floor(seed / 5) * 2 + nth) % DENSITIES.length];
}
