import { expect, test } from "vitest";
import { makeTool, POLICY } from "../pipeline/fixtures.ts";
import { CallerRun } from "./caller.ts";
import type { SimulatedCaller } from "./scenario-parts.ts";
import { createWorld, createWorldParts } from "./world.ts";

/** One caller that reads a message each 700 ms, of a tool whose upstream answers after 110 ms and ignores its signal. */
async function readSlowly(changes: Partial<SimulatedCaller>, seed = 1) {
  const tool = {
    definition: makeTool({ name: "pay", delivery: changes.requestId === undefined ? "conclusive" : "incremental" }),
    policy: POLICY,
    temper: { faults: [], latencyMs: [110, 110], deaf: 1, pieces: 6 },
    idempotencyField: undefined,
  } as const;
  const caller: SimulatedCaller = {
    atMs: 0,
    tool: "pay",
    principal: "ann",
    requestId: undefined,
    n: 1,
    streams: true,
    timeoutMs: undefined,
    rpcTimeoutMs: undefined,
    resumeWindowMs: undefined,
    heartbeatMs: 0,
    pauseMs: 700,
    leaving: undefined,
    ...changes,
  };
  const ledger = { failing: 0, slowestMs: 0 };
  const kept = { memoryBytes: 10_000, diskBytes: 0, streams: 10 };
  const world = createWorld({ seed, tools: [tool], callers: [caller], ledger, kept, lies: 0 }, createWorldParts());
  const run = new CallerRun(caller, "caller", { ...world, totalMs: () => POLICY.totalMs });
  run.begin();
  await world.clock.advance(10_000);
  return { leg: run.legs[0], broken: world.journal.broken };
}

test("a slow reader that has the answer hears nothing of a deadline that passed by then", async () => {
  const { leg, broken } = await readSlowly({ timeoutMs: 1_000 });
  expect(leg?.end).toMatchObject({ type: "completed", failure: undefined });
  expect(broken).toEqual([]);
});

test("a slow reader of a call with a key that is answered right after its deadline gets an end", async () => {
  const { leg, broken } = await readSlowly({ requestId: "k1", timeoutMs: 112 }, 10);
  expect(leg?.end).toMatchObject({ type: "error", error: { reason: "CALL_DEADLINE_EXCEEDED", effect: "unknown" } });
  expect(broken).toEqual([]);
});
