import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import type { Invoke, UpstreamEvent } from "../../src/core/call.ts";
import { sleep } from "../../src/core/clock.ts";
import { type ErrorReason, GatewayError } from "../../src/core/errors.ts";
import type { HedgePolicy } from "../../src/core/step.ts";
import { Latencies } from "../../src/pipeline/latencies.ts";
import { RetryBudgets } from "../../src/pipeline/retry-budget.ts";
import { createHedgeStep } from "../../src/pipeline/steps/hedge.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import { collect, makeCall, makeContext, makeTool, POLICY } from "./fixtures.ts";

const PROGRESS: UpstreamEvent = { type: "progress", current: 1, total: 2, message: "half" };

/** What one attempt does: gives these events, ends with an error, or waits so many milliseconds. */
type Script = readonly (UpstreamEvent | GatewayError | number)[];

function result(value: number): UpstreamEvent {
  return { type: "upstream-result", result: { content: [], value, effect: "none" } };
}

const DOWN: UpstreamEvent = {
  type: "upstream-result",
  result: {
    content: [],
    failure: {
      reason: "UPSTREAM_STATUS",
      message: "HTTP 503",
      upstreamCode: 503,
      retryable: true,
      transient: true,
      upstreamFault: true,
    },
    effect: "none",
  },
};

/** A hedging step around an adapter that does what the scripts say, attempt by attempt; the last goes on. */
class Bench {
  readonly clock: FakeClock = createFakeClock();
  readonly controller = new AbortController();
  readonly budgets = new RetryBudgets();
  readonly startedAtMs: number[] = [];
  /** Why each attempt was ended from outside, if it was. */
  readonly cancelled: (ErrorReason | undefined)[] = [];
  scripts: readonly Script[];
  readonly #step = createHedgeStep(this.budgets);
  readonly #hedge: HedgePolicy;
  readonly #run: ReturnType<typeof this.compile>;

  constructor(scripts: readonly Script[], hedge: HedgePolicy = { after: { ms: 100 }, max: 1 }) {
    this.scripts = scripts;
    this.#hedge = hedge;
    this.#run = this.compile();
  }

  compile(changes: Parameters<typeof makeTool>[0] = {}, effectClass: "read" | "idempotent" = "read") {
    const policy = { ...POLICY, effectClass, hedge: this.#hedge };
    return this.#step.compile(makeTool(changes), policy, { clock: this.clock }, undefined);
  }

  open(): AsyncIterable<UpstreamEvent> {
    let begun = 0;
    const adapter: Invoke = (_call, { signal }) => {
      const index = this.startedAtMs.push(this.clock.monotonicMs()) - 1;
      signal.addEventListener("abort", () => (this.cancelled[index] = (signal.reason as GatewayError).reason));
      return this.#playing(this.scripts[Math.min(begun++, this.scripts.length - 1)] ?? [], signal);
    };
    return this.#run?.(makeCall(), makeContext({ signal: this.controller.signal }), adapter) ?? expect.unreachable();
  }

  async call(): Promise<unknown> {
    const running = collect(this.open()).catch((error: unknown) => error);
    for (let i = 0; i < 20; i++) await this.clock.advance(this.clock.nextInMs ?? 0);
    return running;
  }

  async *#playing(script: Script, signal: AbortSignal): AsyncGenerator<UpstreamEvent, void, undefined> {
    for (const step of script) {
      if (step instanceof GatewayError) throw step;
      if (typeof step === "number") await sleep(this.clock, step, signal);
      else yield step;
    }
  }
}

test("an attempt that answers in time is the only one", async () => {
  const bench = new Bench([[99, result(1)]]);
  expect(await bench.call()).toEqual([result(1)]);
  expect(bench.startedAtMs).toEqual([0]);
  expect(bench.clock.pending).toBe(0);
});

test("where it takes longer a second one begins, the first answer counts, and the other is cancelled", async () => {
  const bench = new Bench([
    [5_000, result(1)],
    [50, result(2)],
  ]);
  expect(await bench.call()).toEqual([
    { type: "upstream-result", result: { content: [], value: 2, effect: "none", attempts: 2 } },
  ]);
  expect(bench.startedAtMs).toEqual([0, 100]);
  expect(bench.cancelled[0]).toBe("CALL_CANCELLED");
  expect(bench.clock.pending).toBe(0);
  expect(getEventListeners(bench.controller.signal, "abort")).toHaveLength(0);
});

test("the first one may still win", async () => {
  const bench = new Bench([
    [120, result(1)],
    [50, result(2)],
  ]);
  expect(await bench.call()).toMatchObject([{ result: { value: 1, attempts: 2 } }]);
});

test("as many run besides the first as declared, each begun after the wait", async () => {
  const bench = new Bench([[5_000, result(1)]], { after: { ms: 100 }, max: 3 });
  await bench.call();
  expect(bench.startedAtMs).toEqual([0, 100, 200, 300]);
});

test("a fault does not end it while another attempt runs; if all fail the last outcome stands", async () => {
  const lost = new GatewayError("UPSTREAM_UNREACHABLE", "lost");
  expect(
    await new Bench([
      [300, lost],
      [400, result(2)],
    ]).call(),
  ).toMatchObject([{ result: { value: 2 } }]);
  expect(
    await new Bench([
      [300, result(1)],
      [50, DOWN],
    ]).call(),
  ).toMatchObject([{ result: { value: 1 } }]);
  expect(
    await new Bench([
      [300, DOWN],
      [400, lost],
    ]).call(),
  ).toMatchObject({
    reason: "UPSTREAM_UNREACHABLE",
    message: "lost",
    metadata: { attempts: "2" },
  });
  const bench = new Bench([[50, lost]]);
  expect(await bench.call()).toBe(lost);
  expect(bench.startedAtMs).toEqual([0]);
});

test("progress of all passes; the first output settles whose answer it is", async () => {
  const delta: UpstreamEvent = { type: "upstream-delta", text: "a" };
  const bench = new Bench([
    [PROGRESS, 150, PROGRESS, 150, delta, 150, delta, result(1)],
    [20, PROGRESS, 400, result(2)],
  ]);
  const events = (await bench.call()) as readonly UpstreamEvent[];
  expect(events.map(({ type }) => type)).toEqual([
    "progress",
    "progress",
    "progress",
    "upstream-delta",
    "upstream-delta",
    "upstream-result",
  ]);
  expect(events.at(-1)).toMatchObject({ result: { value: 1 } });
  expect(bench.cancelled[1]).toBe("CALL_CANCELLED");
});

test("the end of the call ends every attempt with its reason", async () => {
  const bench = new Bench([[5_000, result(1)]]);
  const running = collect(bench.open()).catch((error: unknown) => error);
  await bench.clock.advance(200);
  bench.controller.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "too slow"));
  expect(await running).toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED" });
  expect(bench.cancelled).toEqual(["CALL_DEADLINE_EXCEEDED", "CALL_DEADLINE_EXCEEDED"]);
  expect(bench.clock.pending).toBe(0);
});

test("hedges stay within the upstream's retry budget", async () => {
  const bench = new Bench([[150, result(1)]]);
  for (let i = 0; i < 30; i++) await bench.call();
  expect(bench.startedAtMs.length).toBe(30 + 10);
});

test("a percentile of the last calls is waited for once there are enough of them", async () => {
  const bench = new Bench([[10, result(1)]], { after: { percentile: 90 }, max: 1 });
  for (let i = 0; i < 40; i++) {
    bench.scripts = [[5 + (i % 10), result(1)]];
    await bench.call();
  }
  const before = bench.startedAtMs.length;
  bench.scripts = [
    [5_000, result(1)],
    [1, result(2)],
  ];
  await bench.call();
  const [first = 0, second = 0] = bench.startedAtMs.slice(before);
  expect(second - first).toBe(13);
});

test("latencies give a percentile of the last 128, and none of too few", () => {
  const latencies = new Latencies();
  for (let i = 1; i <= 19; i++) latencies.add(i);
  expect(latencies.percentile(90)).toBeUndefined();
  for (let i = 20; i <= 100; i++) latencies.add(i);
  expect(latencies.percentile(90)).toBe(90);
  expect(latencies.percentile(50)).toBe(50);
  for (let i = 0; i < 1_000; i++) latencies.add(7);
  expect(latencies.percentile(99)).toBe(7);
});

test("tools that may change something, or answer in pieces, are never hedged", () => {
  const bench = new Bench([]);
  expect(bench.compile({}, "idempotent")).toBeUndefined();
  expect(bench.compile({ delivery: "incremental" })).toBeUndefined();
  expect(bench.compile()).toBeDefined();
});
