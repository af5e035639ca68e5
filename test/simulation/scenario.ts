import type { EffectClass, GroupPolicy, ToolPolicy } from "../../src/core/step.ts";
import type { ToolDefinition, ToolHints } from "../../src/core/tool.ts";
import { makeTool, POLICY } from "../pipeline/fixtures.ts";
import { type Density, densityOf } from "./density.ts";
import { createDice, type Dice } from "./dice.ts";
import type { Leaving, Scenario, SimulatedCaller, SimulatedTool, Temper } from "./scenario-parts.ts";

/** The scenario of a seed: of most seeds whatever chance brings, of the others much of one thing. */
export function makeScenario(seed: number): Scenario {
  const dice = createDice(seed);
  const density = densityOf(seed);
  const scenario = makeAnyScenario(seed, dice);
  return density === undefined ? scenario : condense(scenario, density, dice);
}

/** A scenario of few tools and many callers that has what one kind of schedule is about. */
function condense(scenario: Scenario, density: Density, dice: Dice): Scenario {
  const tools = scenario.tools.slice(0, density.tools).map((tool) => {
    const {
      effectClass = tool.policy.effectClass,
      delivery = tool.definition.delivery,
      ...choice
    } = density.tool(dice);
    const { name } = tool.definition;
    const policy: ToolPolicy = { ...tool.policy, ...NO_POLICY, totalMs: 60_000, ...choice.policy, effectClass };
    return describe(name, policy, {
      delivery,
      temper: { deaf: 0, latencyMs: [1, 20], faults: [], pieces: 6, ...choice.temper },
    });
  });
  const callers = Array.from({ length: density.callers }, () => ({
    ...makeCaller(tools, density.spanMs, dice),
    ...density.caller(dice),
  }));
  const ledger = { failing: 0, slowestMs: dice.oneOf([0, 5]) };
  return { ...scenario, tools, callers, ledger, lies: density.lies ?? 0, kept: density.kept ?? scenario.kept };
}

const NO_POLICY = {
  group: undefined,
  concurrencyLimit: undefined,
  adaptiveConcurrency: false,
  hedge: undefined,
  circuitBreaker: undefined,
  rateLimit: undefined,
} as const;

function makeAnyScenario(seed: number, dice: Dice): Scenario {
  const groups = [undefined, makeGroup("g0", dice), makeGroup("g1", dice)] as const;
  const tools = Array.from({ length: dice.between(1, 4) }, (_, i) =>
    makeSimulatedTool(`t${i}`, dice.oneOf(groups), dice),
  );
  const spanMs = dice.oneOf([0, 50, 1_000, 20_000, 120_000]);
  const callers = Array.from({ length: dice.oneOf([1, 3, 8, 16, 30]) }, () => makeCaller(tools, spanMs, dice));
  const failing = dice.oneOf([0, 0, 0, 0.05, 0.3]);
  return {
    seed,
    tools,
    callers,
    ledger: { failing, slowestMs: dice.oneOf([0, 0, 5, 200]) },
    kept: {
      memoryBytes: dice.oneOf([200, 2_000, 131_072]),
      diskBytes: dice.oneOf([0, 2_000, 1_048_576]),
      streams: dice.oneOf([1, 100]),
    },
    lies: 0,
  };
}

function makeGroup(name: string, dice: Dice): GroupPolicy {
  return {
    name,
    maxParallelCalls: dice.oneOf([undefined, 1, 2, 5]),
    rateLimit: dice.oneOf([undefined, undefined, { requests: 5, perMs: 1_000, burst: 5 }]),
  };
}

const HINTS: Readonly<Record<EffectClass, ToolHints>> = {
  read: { readOnly: true },
  idempotent: { readOnly: false, idempotent: true },
  keyed: { readOnly: false },
  write: { readOnly: false },
};

function makeSimulatedTool(name: string, group: GroupPolicy | undefined, dice: Dice): SimulatedTool {
  const effectClass = dice.oneOf<EffectClass>(["read", "idempotent", "keyed", "write", "write"]);
  const totalMs = dice.oneOf([100, 2_000, 10_000, 60_000]);
  const policy: ToolPolicy = {
    ...POLICY,
    totalMs,
    effectClass,
    upstream: dice.oneOf(["http://127.0.0.1:1", "http://127.0.0.1:2"]),
    group,
    retry: {
      maxRetries: dice.oneOf([0, 1, 3, 8]),
      backoff: dice.oneOf(["exponential", "linear", "fixed"]),
      initialBackoffMs: dice.oneOf([1, 100, 1_000]),
      maxBackoffMs: dice.oneOf([100, 5_000]),
      budget: dice.oneOf([0.01, 0.2, 1]),
    },
    concurrencyLimit: dice.oneOf([undefined, 1, 2, 4]),
    adaptiveConcurrency: dice.chance(0.15),
    hedge: dice.oneOf([undefined, { after: { ms: dice.oneOf([5, 100]) }, max: dice.between(1, 3) }]),
    circuitBreaker: dice.oneOf([
      undefined,
      {
        failureThreshold: dice.oneOf([1, 2, 5]),
        resetTimeoutMs: dice.oneOf([50, 1_000, 30_000]),
        scope: dice.oneOf(["tool", "upstream"]),
      },
    ]),
    queue: { maxLength: dice.oneOf([0, 1, 100]), maxWaitMs: dice.oneOf([10, 1_000, 30_000]) },
    rateLimit: dice.oneOf([undefined, undefined, { requests: 10, perMs: 1_000, burst: dice.oneOf([1, 3]) }]),
  };
  const delivery = dice.oneOf<ToolDefinition["delivery"]>(["conclusive", "incremental"]);
  return describe(name, policy, { delivery, temper: makeTemper(dice) });
}

function describe(
  name: string,
  policy: ToolPolicy,
  { delivery, temper }: { readonly delivery: ToolDefinition["delivery"]; readonly temper: Temper },
): SimulatedTool {
  const { effectClass, totalMs } = policy;
  const definition = makeTool({ name, delivery, hints: HINTS[effectClass], defaultTimeoutMs: totalMs });
  return { definition, policy, temper, idempotencyField: effectClass === "keyed" ? "order_key" : undefined };
}

const FAULTS = [
  "unavailable",
  "rate-limited",
  "refused",
  "lost",
  "timeout",
  "unreachable",
  "no-connection",
  "hang",
  "breaks",
  "endless",
] as const;

function makeTemper(dice: Dice): Temper {
  const share = dice.oneOf([0, 0.05, 0.3, 0.8]);
  const kinds = dice.chance(0.4) ? FAULTS : Array.from({ length: dice.between(1, 2) }, () => dice.oneOf(FAULTS));
  return {
    faults: kinds.map((end) => [end, share / kinds.length]),
    latencyMs: dice.oneOf([
      [0, 0],
      [1, 20],
      [50, 500],
      [1_000, 8_000],
    ]),
    deaf: dice.oneOf([0, 0, 0.1, 0.5]),
    pieces: 6,
  };
}

function makeCaller(tools: readonly SimulatedTool[], spanMs: number, dice: Dice): SimulatedCaller {
  const tool = tools[dice.between(0, tools.length - 1)]?.definition.name ?? "";
  const streams = dice.chance(0.7);
  return {
    // A coarse grid, so that much happens at the same time.
    atMs: Math.round((dice.roll() * spanMs) / 10) * 10,
    tool,
    principal: dice.oneOf(["ann", "ann", "bob"]),
    requestId: dice.chance(0.6) ? `k${dice.between(0, 3)}` : undefined,
    n: dice.chance(0.95) ? 1 : 2,
    streams,
    timeoutMs: dice.oneOf([undefined, undefined, 50, 1_000, 30_000]),
    rpcTimeoutMs: dice.oneOf([undefined, undefined, 70, 5_000]),
    resumeWindowMs: streams ? dice.oneOf([undefined, 100, 20_000]) : undefined,
    heartbeatMs: streams ? dice.oneOf([0, 0, 100, 15_000]) : undefined,
    pauseMs: streams ? dice.oneOf([0, 0, 0, 30, 700]) : 0,
    leaving: dice.chance(0.35) ? makeLeaving(dice) : undefined,
  };
}

function makeLeaving(dice: Dice): Leaving {
  return {
    how: dice.oneOf(["cancel", "lose", "lose", "stop"]),
    afterMs: dice.oneOf([0, dice.between(1, 100), dice.between(100, 5_000)]),
    backAfterMs: dice.oneOf([undefined, 0, 50, 3_000, -20]),
  };
}
