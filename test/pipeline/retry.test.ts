import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import type { Invoke, ToolFailure, UpstreamEvent, UpstreamResult } from "../../src/core/call.ts";
import type { Effect } from "../../src/core/effect.ts";
import { type ErrorReason, GatewayError, type GatewayErrorOptions } from "../../src/core/errors.ts";
import type { EffectClass, RetryPolicy } from "../../src/core/step.ts";
import { RetryBudgets } from "../../src/pipeline/retry-budget.ts";
import { createRetryStep } from "../../src/pipeline/steps/retry.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import {
  collect,
  makeCall,
  makeContext,
  makeTool,
  POLICY,
  RESULT,
  type RecordedLine,
  recordingLogger,
} from "./fixtures.ts";

const DELTA: UpstreamEvent = { type: "upstream-delta", text: "a" };
const PROGRESS: UpstreamEvent = { type: "progress", current: 1, total: 2, message: "half" };

/** What one attempt does: gives these events, then ends with a result or an error. */
type Script = readonly (UpstreamEvent | GatewayError)[];

function lost(reason: ErrorReason, options: GatewayErrorOptions = {}): GatewayError {
  return new GatewayError(reason, "the fault", { metadata: { tool: "order_status" }, ...options });
}

function answered(status: number, effect: Effect, changes: Partial<ToolFailure> = {}): UpstreamEvent {
  const failure: ToolFailure = {
    reason: "UPSTREAM_STATUS",
    message: `HTTP ${status}`,
    upstreamCode: status,
    retryable: true,
    transient: true,
    upstreamFault: true,
    ...changes,
  };
  return { type: "upstream-result", result: { content: [], failure, upstreamCode: status, effect } };
}

const UNREACHABLE = lost("UPSTREAM_UNREACHABLE");

/** A retry step around an adapter that does what the scripts say, attempt by attempt; the last goes on. */
class Bench {
  readonly clock: FakeClock = createFakeClock();
  readonly controller = new AbortController();
  readonly lines: RecordedLine[] = [];
  readonly seen: unknown[] = [];
  readonly startedAtMs: number[] = [];
  readonly budgets = new RetryBudgets();
  random = 1;
  deadlineMs = this.clock.now() + 600_000;

  async run(
    scripts: readonly Script[],
    policy: { readonly effectClass?: EffectClass; readonly retry?: Partial<RetryPolicy> } = {},
  ): Promise<readonly UpstreamEvent[] | GatewayError> {
    const running = collect(this.open(scripts, policy)).catch((error: unknown) => error);
    for (let i = 0; i < 50; i++) await this.clock.advance(this.clock.nextInMs ?? 0);
    return (await running) as readonly UpstreamEvent[] | GatewayError;
  }

  open(
    scripts: readonly Script[],
    {
      effectClass = "write",
      retry = {},
    }: { readonly effectClass?: EffectClass; readonly retry?: Partial<RetryPolicy> } = {},
  ): AsyncIterable<UpstreamEvent> {
    const step = createRetryStep({ budgets: this.budgets, random: () => this.random });
    const policy = { ...POLICY, effectClass, retry: { ...POLICY.retry, maxRetries: 3, ...retry } };
    const interceptor = step.compile(makeTool(), policy, { clock: this.clock }, undefined);
    if (interceptor === undefined) throw new Error("not in the path");
    const context = makeContext({
      signal: this.controller.signal,
      deadlineMs: this.deadlineMs,
      logger: recordingLogger(this.lines),
    });
    const start = this.clock.now();
    const adapter: Invoke = (_call, { attempt }) => {
      this.seen.push(attempt);
      this.startedAtMs.push(this.clock.now() - start);
      return playing(scripts[Math.min(attempt, scripts.length) - 1] ?? []);
    };
    return interceptor(makeCall(), context, adapter);
  }
}

async function* playing(script: Script): AsyncGenerator<UpstreamEvent, void, undefined> {
  for (const step of script) {
    if (step instanceof GatewayError) throw step;
    yield step;
  }
}

function resultOf(outcome: readonly UpstreamEvent[] | GatewayError): UpstreamResult {
  const last = outcome instanceof GatewayError ? undefined : outcome.at(-1);
  if (last?.type !== "upstream-result") throw new Error("no result", { cause: outcome });
  return last.result;
}

test("a tool without retries has no such step", () => {
  const step = createRetryStep({ budgets: new RetryBudgets() });
  expect(step.compile(makeTool(), POLICY, { clock: createFakeClock() }, undefined)).toBeUndefined();
});

test("`max_retries` counts the attempts after the first, and the error says how many were made [S2-60]", async () => {
  const bench = new Bench();
  const error = await bench.run([[UNREACHABLE]]);
  expect(bench.seen).toEqual([1, 2, 3, 4]);
  expect(error).toMatchObject({
    reason: "UPSTREAM_UNREACHABLE",
    message: "the fault (after 4 attempts)",
    modelMessage: "the fault (after 4 attempts)",
    effect: "none",
    retryable: true,
    metadata: { tool: "order_status", attempts: "4" },
  });
});

test("an attempt that goes well ends it, and the result says how many it took", async () => {
  const bench = new Bench();
  const outcome = await bench.run([[UNREACHABLE], [answered(503, "none")], [RESULT]]);
  expect(bench.seen).toEqual([1, 2, 3]);
  expect(resultOf(outcome)).toEqual({ content: [], value: 1, effect: "none", attempts: 3 });
});

test("a failure that stays says after how many attempts", async () => {
  const outcome = await new Bench().run([[answered(503, "none")]], { effectClass: "read" });
  expect(resultOf(outcome)).toMatchObject({ attempts: 4, failure: { message: "HTTP 503 (after 4 attempts)" } });
});

test("exponential back-off doubles from the first wait up to the longest, a random part of it each time [S2-61, S2-62]", async () => {
  const bench = new Bench();
  const retry = { maxRetries: 7, initialBackoffMs: 1_000, maxBackoffMs: 30_000 };
  await bench.run([[UNREACHABLE]], { retry });
  expect(bench.startedAtMs).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000]);
  const half = new Bench();
  half.random = 0.5;
  await half.run([[UNREACHABLE]], { retry });
  expect(half.startedAtMs).toEqual([0, 500, 1_500, 3_500, 7_500, 15_500, 30_500, 45_500]);
});

test("linear back-off grows by the first wait, fixed back-off not at all and without chance", async () => {
  const linear = new Bench();
  await linear.run([[UNREACHABLE]], { retry: { backoff: "linear", maxBackoffMs: 2_500 } });
  expect(linear.startedAtMs).toEqual([0, 1_000, 3_000, 5_500]);
  const fixed = new Bench();
  fixed.random = 0;
  await fixed.run([[UNREACHABLE]], { retry: { backoff: "fixed" } });
  expect(fixed.startedAtMs).toEqual([0, 1_000, 2_000, 3_000]);
});

test("what the upstream asks for is waited where it is longer, and where it is too long nothing is tried again [U-D09]", async () => {
  const asked = async (retryAfterMs: number): Promise<number | undefined> => {
    const bench = new Bench();
    await bench.run([[answered(429, "none", { retryAfterMs })], [RESULT]]);
    return bench.startedAtMs[1];
  };
  expect(await asked(2_000)).toBe(2_000);
  expect(await asked(0)).toBe(1_000);
  expect(await asked(30_000)).toBe(30_000);
  expect(await asked(30_001)).toBeUndefined();
  const bench = new Bench();
  const outcome = await bench.run([[answered(429, "none", { retryAfterMs: 86_400_000 })], [RESULT]]);
  expect(resultOf(outcome).failure).toMatchObject({ message: "HTTP 429", retryAfterMs: 86_400_000 });
  expect(bench.lines.at(-1)).toMatchObject({
    message: "tool-call-retry-withheld",
    fields: { why: "retry-after", attempt: 1, waitMs: 86_400_000 },
  });
});

interface Case {
  readonly what: string;
  readonly end: UpstreamEvent | GatewayError;
  /** Classes of tools that try again after it. */
  readonly repeats: readonly EffectClass[];
}

const ALL: readonly EffectClass[] = ["read", "idempotent", "keyed", "write"];
const HARMLESS: readonly EffectClass[] = ["read", "idempotent", "keyed"];

const CASES: readonly Case[] = [
  { what: "never sent", end: UNREACHABLE, repeats: ALL },
  { what: "no connection in time", end: lost("UPSTREAM_TIMEOUT", { metadata: { limit: "connect" } }), repeats: ALL },
  {
    what: "no answer in time",
    end: lost("UPSTREAM_TIMEOUT", { effect: "unknown", retryable: false }),
    repeats: HARMLESS,
  },
  { what: "answer lost", end: lost("UPSTREAM_ANSWER_LOST", { effect: "unknown" }), repeats: HARMLESS },
  { what: "refused with a wish to come again", end: answered(429, "none"), repeats: ALL },
  { what: "broken down", end: answered(503, "unknown", { retryable: false }), repeats: HARMLESS },
  { what: "a status that stays", end: answered(501, "unknown", { transient: false }), repeats: [] },
  { what: "a tool's own no", end: answered(200, "unknown", { transient: false, upstreamFault: false }), repeats: [] },
  { what: "an address that is not allowed", end: lost("UPSTREAM_UNREACHABLE", { retryable: false }), repeats: [] },
  { what: "wrong arguments", end: lost("ARGUMENTS_INVALID"), repeats: [] },
  { what: "a full line", end: lost("CONCURRENCY_LIMIT_REACHED"), repeats: [] },
  { what: "cancelled", end: lost("CALL_CANCELLED"), repeats: [] },
  { what: "deadline", end: lost("CALL_DEADLINE_EXCEEDED", { retryable: true }), repeats: [] },
  { what: "too large", end: lost("RESULT_TOO_LARGE"), repeats: [] },
  { what: "a fault of the gateway", end: lost("INTERNAL"), repeats: [] },
  { what: "a result", end: RESULT, repeats: [] },
];

for (const { what, end, repeats } of CASES) {
  test(`after "${what}" these try again: ${repeats.join(", ") || "none"} [S2-73]`, async () => {
    const tried: EffectClass[] = [];
    for (const effectClass of ALL) {
      const bench = new Bench();
      await bench.run([[end], [RESULT]], { effectClass });
      if (bench.seen.length === 2) tried.push(effectClass);
      if (bench.seen.length === 1) expect(bench.lines).toEqual([]);
    }
    expect(tried).toEqual(repeats);
  });
}

test("a single attempt's error and result come out as they are", async () => {
  const error = lost("UPSTREAM_ANSWER_LOST", { effect: "unknown" });
  expect(await new Bench().run([[error]])).toBe(error);
  expect(await new Bench().run([[PROGRESS, DELTA, RESULT]])).toEqual([PROGRESS, DELTA, RESULT]);
});

test("nothing is tried again once output was given on; progress may pass before it", async () => {
  const bench = new Bench();
  expect(await bench.run([[DELTA, UNREACHABLE], [RESULT]], { effectClass: "read" })).toBe(UNREACHABLE);
  const early = new Bench();
  const outcome = await early.run(
    [
      [PROGRESS, UNREACHABLE],
      [PROGRESS, DELTA, UNREACHABLE],
    ],
    { effectClass: "read" },
  );
  expect(early.seen).toEqual([1, 2]);
  expect(outcome).toMatchObject({ metadata: { attempts: "2" } });
});

test("an earlier attempt that may have acted is not forgotten when the last did nothing", async () => {
  const unknown = lost("UPSTREAM_ANSWER_LOST", { effect: "unknown" });
  expect(await new Bench().run([[unknown], [UNREACHABLE]], { effectClass: "keyed" })).toMatchObject({
    effect: "unknown",
  });
  const no = answered(404, "none", { transient: false });
  const outcome = await new Bench().run([[unknown], [no]], { effectClass: "idempotent" });
  expect(resultOf(outcome)).toMatchObject({ effect: "unknown", attempts: 2 });
  const done = { type: "upstream-result", result: { content: [], effect: "committed" } } as const;
  expect(resultOf(await new Bench().run([[unknown], [done]], { effectClass: "keyed" })).effect).toBe("committed");
});

test("a wait that does not fit before the deadline is not begun, and the last outcome stands [R-D06]", async () => {
  const bench = new Bench();
  bench.deadlineMs = bench.clock.now() + 3_500;
  expect(await bench.run([[UNREACHABLE]])).toMatchObject({ metadata: { attempts: "3" } });
  expect(bench.startedAtMs).toEqual([0, 1_000, 3_000]);
  expect(bench.lines.at(-1)).toMatchObject({
    message: "tool-call-retry-withheld",
    fields: { why: "deadline", attempt: 3 },
  });
  const asked = new Bench();
  asked.deadlineMs = asked.clock.now() + 3_500;
  const outcome = await asked.run([[answered(429, "none", { retryAfterMs: 4_000 })], [RESULT]]);
  expect(resultOf(outcome).failure).toMatchObject({ message: "HTTP 429" });
});

test("retries of all calls of an upstream share its budget", async () => {
  const bench = new Bench();
  bench.random = 0;
  const run = (): Promise<unknown> => bench.run([[UNREACHABLE]], { retry: { budget: 0 } });
  for (let i = 0; i < 5; i++) await run();
  expect(bench.seen).toHaveLength(5 + 10);
  expect(bench.lines.at(-1)).toMatchObject({ message: "tool-call-retry-withheld", fields: { why: "budget" } });
});

test("each retry is on record with its reason, its wait and the attempt before it", async () => {
  const bench = new Bench();
  await bench.run([[lost("UPSTREAM_TIMEOUT", { metadata: { limit: "read" } })], [answered(503, "none")], [RESULT]]);
  const facts = { callId: makeContext().callId, tool: "order_status" };
  expect(bench.lines).toEqual([
    {
      level: "info",
      message: "tool-call-retry",
      fields: { ...facts, attempt: 1, waitMs: 1_000, reason: "UPSTREAM_TIMEOUT", limit: "read" },
    },
    {
      level: "info",
      message: "tool-call-retry",
      fields: { ...facts, attempt: 2, waitMs: 2_000, reason: "UPSTREAM_STATUS", upstreamCode: 503 },
    },
  ]);
});

test("a call that ends while it waits ends at once, with what its attempts may have done, and leaves no timer", async () => {
  const bench = new Bench();
  const running = collect(
    bench.open([[lost("UPSTREAM_ANSWER_LOST", { effect: "unknown" })]], { effectClass: "idempotent" }),
  ).catch((error: unknown) => error);
  await bench.clock.advance(10);
  bench.controller.abort(new GatewayError("CALL_CANCELLED", "the caller went away"));
  expect(await running).toMatchObject({
    reason: "CALL_CANCELLED",
    effect: "unknown",
    message: "the caller went away (after 1 attempt)",
  });
  expect(bench.clock.pending).toBe(0);
  expect(getEventListeners(bench.controller.signal, "abort")).toHaveLength(0);
  expect(bench.seen).toEqual([1]);
});

test("a call that is only validated is not repeated", async () => {
  const step = createRetryStep({ budgets: new RetryBudgets() });
  const clock = createFakeClock();
  const policy = { ...POLICY, retry: { ...POLICY.retry, maxRetries: 3 } };
  const failing: Invoke = async function* () {
    throw UNREACHABLE;
  };
  const context = makeContext({ deadlineMs: clock.now() + 60_000 });
  const run = step.compile(
    makeTool(),
    policy,
    { clock },
    undefined,
  )?.(makeCall({}, { validateOnly: true }), context, failing);
  await expect(collect(run ?? ([] as never))).rejects.toBe(UNREACHABLE);
});
