import { expect, test } from "vitest";
import type { UpstreamEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { FaultPlan, FaultRule } from "../../src/core/fault.ts";
import type { ToolPolicy } from "../../src/core/step.ts";
import { createFaultsStep } from "../../src/pipeline/steps/faults.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { collect, invokeOf, makeCall, makeContext, makeTool, POLICY, RESULT } from "./fixtures.ts";

const READS: ToolPolicy = { ...POLICY, effectClass: "read" };

function rule(changes: Partial<FaultRule>): FaultRule {
  return { tools: ["*"], share: 1, latencyMs: 0, outcome: undefined, cutAfterBytes: undefined, ...changes };
}

interface Outcome {
  readonly passed: readonly UpstreamEvent[];
  readonly error: unknown;
  /** Whether the upstream was called. */
  readonly called: boolean;
}

async function attempt(
  plan: FaultPlan | FaultRule,
  { policy = POLICY, events = [RESULT], clock = createFakeClock(), name = "order_status" } = {},
): Promise<Outcome> {
  const step = createFaultsStep(() => ("rules" in plan ? plan : { seed: 1, rules: [plan] }));
  const intercept = step.compile(makeTool({ name }), policy, { clock }, undefined);
  const passed: UpstreamEvent[] = [];
  let called = false;
  try {
    const run = intercept?.(makeCall(), makeContext(), (...args) => {
      called = true;
      return invokeOf(...events)(...args);
    });
    for await (const event of run ?? []) passed.push(event);
    return { passed, error: undefined, called };
  } catch (error) {
    return { passed, error, called };
  }
}

function facts({ error, called }: Outcome): readonly unknown[] {
  if (!(error instanceof GatewayError)) return [error, called];
  return [error.reason, error.effect, error.retryable, called];
}

test("an upstream that cannot be reached is not called, and surely nothing happened", async () => {
  expect(facts(await attempt(rule({ outcome: "unreachable" })))).toEqual(["UPSTREAM_UNREACHABLE", "none", true, false]);
});

test("an upstream that does not answer in time may have acted, unless it only reads", async () => {
  const timeout = rule({ outcome: "timeout" });
  expect(facts(await attempt(timeout))).toEqual(["UPSTREAM_TIMEOUT", "unknown", false, false]);
  expect(facts(await attempt(timeout, { policy: READS }))).toEqual(["UPSTREAM_TIMEOUT", "none", true, false]);
});

test("an answer is lost after the upstream has acted", async () => {
  const lost = rule({ outcome: "answer_lost" });
  expect(facts(await attempt(lost))).toEqual(["UPSTREAM_ANSWER_LOST", "unknown", false, true]);
  expect(facts(await attempt(lost, { policy: READS }))).toEqual(["UPSTREAM_UNREACHABLE", "none", true, true]);
});

test("an upstream that is unavailable or asks to slow down answers with a failure", async () => {
  const unavailable = await attempt(rule({ outcome: "unavailable" }), { policy: READS });
  const limited = await attempt(rule({ outcome: "rate_limited" }));
  const failures = [...unavailable.passed, ...limited.passed].map(
    (event) => event.type === "upstream-result" && event.result.failure,
  );
  expect(failures).toMatchObject([
    { reason: "UPSTREAM_STATUS", upstreamCode: 503, retryable: true, upstreamFault: true },
    { reason: "UPSTREAM_RATE_LIMITED", upstreamCode: 429, retryable: true, upstreamFault: false },
  ]);
});

test("output is cut after so many bytes, and what came before has passed", async () => {
  const events: UpstreamEvent[] = [
    { type: "upstream-delta", text: "12345" },
    { type: "upstream-delta", text: "67890" },
    { type: "upstream-delta", text: "!" },
    RESULT,
  ];
  const { passed, error } = await attempt(rule({ cutAfterBytes: 10 }), { events });
  expect(passed).toEqual(events.slice(0, 2));
  expect(error).toMatchObject({ reason: "UPSTREAM_ANSWER_LOST" });
  expect((await attempt(rule({ cutAfterBytes: 12 }), { events })).error).toBeUndefined();
});

test("a wait comes before the upstream is called, and ends with the call", async () => {
  const clock = createFakeClock();
  let called = 0;
  const step = createFaultsStep(() => ({ seed: 1, rules: [rule({ latencyMs: 200 })] }));
  const stop = new AbortController();
  const open = (signal: AbortSignal): Promise<unknown> => {
    const run = step.compile(
      makeTool(),
      POLICY,
      { clock },
      undefined,
    )?.(makeCall(), makeContext({ signal }), (...args) => {
      called += 1;
      return invokeOf(RESULT)(...args);
    });
    return collect(run ?? []);
  };
  const left = open(stop.signal);
  stop.abort(new GatewayError("CALL_CANCELLED", "gone"));
  await expect(left).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
  const waiting = open(new AbortController().signal);
  await clock.advance(199);
  expect(called).toBe(0);
  await clock.advance(1);
  expect(await waiting).toEqual([RESULT]);
  expect(clock.pending).toBe(0);
});

test("only tools that a glob names have the fault", async () => {
  const some = rule({ tools: ["order_*", "stock"], outcome: "unreachable" });
  expect((await attempt(some)).error).toBeDefined();
  expect((await attempt(some, { name: "stock" })).error).toBeDefined();
  expect((await attempt(some, { name: "weather" })).error).toBeUndefined();
});

async function hits(seed: number, share: number): Promise<string> {
  const step = createFaultsStep(() => plan);
  const plan: FaultPlan = { seed, rules: [rule({ share, outcome: "unreachable" })] };
  const intercept = step.compile(makeTool(), POLICY, { clock: createFakeClock() }, undefined);
  let seen = "";
  for (let i = 0; i < 200; i++) {
    const run = intercept?.(makeCall(), makeContext(), invokeOf(RESULT)) ?? [];
    seen += await collect(run).then(
      () => ".",
      () => "x",
    );
  }
  return seen;
}

test("about the share of attempts has the fault, the same ones for the same seed", async () => {
  const [first, again, other] = await Promise.all([hits(7, 0.2), hits(7, 0.2), hits(8, 0.2)]);
  expect(again).toBe(first);
  expect(other).not.toBe(first);
  const count = first.replaceAll(".", "").length;
  expect(count).toBeGreaterThan(20);
  expect(count).toBeLessThan(60);
});

test("a call that is only validated has no fault", async () => {
  const step = createFaultsStep(() => ({ seed: 1, rules: [rule({ outcome: "unreachable" })] }));
  const intercept = step.compile(makeTool(), POLICY, { clock: createFakeClock() }, undefined);
  const run = intercept?.(makeCall({}, { validateOnly: true }), makeContext(), invokeOf(RESULT)) ?? [];
  expect(await collect(run)).toEqual([RESULT]);
});
