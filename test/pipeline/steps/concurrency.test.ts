import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import type { GroupPolicy, Interceptor, ToolPolicy } from "../../../src/core/step.ts";
import { RetryBudgets } from "../../../src/pipeline/retry-budget.ts";
import { createConcurrencyStep } from "../../../src/pipeline/steps/concurrency.ts";
import { createRetryStep } from "../../../src/pipeline/steps/retry.ts";
import { createRandom } from "../../core/random.ts";
import { makeCall, makeContext, makeTool, POLICY, RESULT } from "../fixtures.ts";
import { type BegunCall, LimitedCalls } from "./limited-calls.ts";

const QUEUE = { maxLength: 100, maxWaitMs: 30_000 };

function aws(maxParallelCalls: number): GroupPolicy {
  return { name: "aws", maxParallelCalls, rateLimit: undefined };
}

function calls(): LimitedCalls {
  return new LimitedCalls(createConcurrencyStep());
}

test("a tool without a limit has no such step in its path", () => {
  const step = createConcurrencyStep();
  const group = { name: "aws", maxParallelCalls: undefined, rateLimit: undefined };
  const compiled = step.compile(makeTool(), { ...POLICY, group }, { clock: calls().clock }, undefined);
  expect(compiled).toBeUndefined();
});

test("so many calls run at a time, and the others have their turn in the order they came [S2-65]", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 2 });
  const begun = ["a", "b", "c", "d", "e"].map((tool) => upstream.begin(path, { tool }));
  await upstream.settle();
  const seen: string[][] = [];
  while (upstream.running.length > 0) {
    seen.push(upstream.running.map(({ tool }) => tool));
    await upstream.endOne();
  }
  expect(seen).toEqual([["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["e"]]);
  expect(await Promise.all(begun.map(({ outcome }) => outcome))).toEqual(Array(5).fill(undefined));
});

test("a call that waits says so at once with its place, and how long it took when its turn comes [S2-67]", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1 });
  const [first, second, third] = [upstream.begin(path), upstream.begin(path), upstream.begin(path)];
  await upstream.settle();
  const enter = { type: "queue-enter", limit: 'tool "orders"' };
  expect(third.events).toEqual([{ ...enter, position: 2 }]);
  await upstream.clock.advance(40);
  await upstream.endOne();
  await upstream.clock.advance(60);
  await upstream.endOne();
  await upstream.endOne();
  await Promise.all([first.outcome, second.outcome, third.outcome]);
  expect(first.events).toEqual([RESULT]);
  expect(second.events).toEqual([{ ...enter, position: 1 }, { type: "queue-leave", waitedMs: 40 }, RESULT]);
  expect(third.events).toEqual([{ ...enter, position: 2 }, { type: "queue-leave", waitedMs: 100 }, RESULT]);
});

test("a line that is full refuses at once, with the place in line and when to call again", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 2, queue: { maxLength: 2, maxWaitMs: 30_000 } });
  const begun = [1, 2, 3, 4].map(() => upstream.begin(path));
  await upstream.settle();
  // Each call so far took 2 s, two at a time.
  await upstream.clock.advance(2_000);
  await upstream.endOne();
  begun.push(upstream.begin(path));
  await upstream.settle();
  const refused = await upstream.begin(path).outcome;
  expect(refused).toMatchObject({
    reason: "CONCURRENCY_LIMIT_REACHED",
    status: "RESOURCE_EXHAUSTED",
    effect: "none",
    retryable: true,
    retryAfterMs: 3_000,
    metadata: { limit: "queue", setting: "queue.max_length", of: 'tool "orders"', running: "2", position: "3" },
  });
  expect(refused?.message).toBe(
    'tool "orders" was not called: tool "orders" is at its limit (`concurrency_limit`), 2 calls run and 2 wait, and as many as may wait do so already (`queue.max_length`); call again in 3 s',
  );
});

test("when to call again is bounded, and not soon while nothing moves", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1, queue: { maxLength: 0, maxWaitMs: 1 } });
  upstream.begin(path);
  await upstream.settle();
  const retryAfterMs = async () => (await upstream.begin(path).outcome)?.retryAfterMs;
  expect(await retryAfterMs()).toBe(1_000);
  await upstream.clock.advance(20_000);
  expect(await retryAfterMs()).toBe(20_000);
  await upstream.clock.advance(3_600_000);
  expect(await retryAfterMs()).toBe(60_000);
  await upstream.endOne();
  for (let i = 0; i < 100; i++) {
    const call = upstream.begin(path);
    await upstream.settle();
    await upstream.endOne();
    await call.outcome;
  }
  upstream.begin(path);
  await upstream.settle();
  expect(await retryAfterMs()).toBe(100);
});

test("a turn that does not come in time is refused, with the place it had come to", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1, queue: { maxLength: 10, maxWaitMs: 500 } });
  upstream.begin(path);
  const waiting = [upstream.begin(path), upstream.begin(path)];
  await upstream.clock.advance(500);
  const errors = await Promise.all(waiting.map(({ outcome }) => outcome));
  expect(errors.map((error) => [error?.reason, error?.metadata["setting"], error?.metadata["position"]])).toEqual([
    ["CONCURRENCY_LIMIT_REACHED", "queue.max_wait", "1"],
    ["CONCURRENCY_LIMIT_REACHED", "queue.max_wait", "1"],
  ]);
  expect(waiting[0]?.events.at(-1)).toEqual({ type: "queue-leave", waitedMs: 500 });
  expect(upstream.running).toHaveLength(1);
});

test("a deadline that passes in line says so, and nothing can have happened", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1 });
  upstream.begin(path);
  const waiting = upstream.begin(path);
  await upstream.settle();
  const deadline = new GatewayError("CALL_DEADLINE_EXCEEDED", "the call took longer than 60 ms", {
    metadata: { limit: "tool", deadline_ms: "60" },
  });
  waiting.controller.abort(deadline);
  expect(await waiting.outcome).toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    message:
      'the call took longer than 60 ms; it waited for its turn (`concurrency_limit` of tool "orders") and was not sent',
    effect: "none",
    retryable: true,
    metadata: { limit: "tool", deadline_ms: "60", tool: "orders", phase: "queue" },
  });
  expect(getEventListeners(waiting.controller.signal, "abort")).toHaveLength(0);
});

test("one that is cancelled in line leaves it at once, and the others move up", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1, queue: { maxLength: 2, maxWaitMs: 30_000 } });
  const [, b, c] = ["a", "b", "c"].map((tool) => upstream.begin(path, { tool }));
  await upstream.settle();
  b?.controller.abort(new GatewayError("CALL_CANCELLED", "gone"));
  expect(await b?.outcome).toMatchObject({ reason: "CALL_CANCELLED", effect: "none" });
  const d = upstream.begin(path, { tool: "d" });
  await upstream.settle();
  expect(d.events).toEqual([{ type: "queue-enter", limit: 'tool "orders"', position: 2 }]);
  await upstream.endOne();
  expect(upstream.running.map(({ tool }) => tool)).toEqual(["c"]);
  void c;
});

test("a reader that goes away while its call waits gives up its place, and a slot that was given meanwhile", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1 });
  upstream.begin(path);
  await upstream.settle();
  const left: AsyncIterator<unknown>[] = [];
  for (const _ of [1, 2]) {
    const events = path(makeCall(), makeContext(), () => expect.unreachable())[Symbol.asyncIterator]();
    expect((await events.next()).value).toMatchObject({ type: "queue-enter" });
    left.push(events);
  }
  await left[0]?.return?.();
  expect(upstream.availabilityOf(path)?.reason).toMatch(/1 call runs and 1 waits/);
  // The slot comes while the reader of the second has not come back for more.
  await upstream.endOne();
  await left[1]?.return?.();
  await upstream.settle();
  const next = upstream.begin(path, { tool: "next" });
  await upstream.settle();
  expect(upstream.running.map(({ tool }) => tool)).toEqual(["next"]);
  expect(next.events).toEqual([]);
});

test("tools of a group share its limit, in the order their calls came [S2-120]", async () => {
  const upstream = calls();
  const paths = ["one", "two", "three"].map((name) => upstream.path({ group: aws(2) }, name));
  for (let i = 0; i < 6; i++) {
    const path = paths[i % 3];
    if (path !== undefined) upstream.begin(path, { tool: `${i}` });
  }
  await upstream.settle();
  const order: string[][] = [];
  while (upstream.running.length > 0) {
    order.push(upstream.running.map(({ tool }) => tool));
    await upstream.endOne();
  }
  expect(order).toEqual([["0", "1"], ["1", "2"], ["2", "3"], ["3", "4"], ["4", "5"], ["5"]]);
  expect(upstream.most).toBe(2);
});

test("a call that waits for its own tool keeps nothing from the rest of its group [S2-66]", async () => {
  const upstream = calls();
  const stalled = upstream.path({ concurrencyLimit: 1, group: aws(2) }, "stalled");
  const other = upstream.path({ group: aws(2) }, "other");
  for (let i = 0; i < 20; i++) upstream.begin(stalled, { tool: "stalled" });
  await upstream.settle();
  for (let i = 0; i < 5; i++) {
    const call = upstream.begin(other, { tool: "other" });
    await upstream.settle();
    expect(upstream.running.map(({ tool }) => tool)).toEqual(["stalled", "other"]);
    upstream.running[1]?.end();
    expect(await call.outcome).toBeUndefined();
    expect(call.events).toEqual([RESULT]);
  }
});

test("one wait is counted over both lines, and the longest wait is for both together", async () => {
  const upstream = calls();
  const queue = { maxLength: 100, maxWaitMs: 100 };
  const one = upstream.path({ concurrencyLimit: 1, group: aws(1), queue }, "one");
  const two = upstream.path({ group: aws(1), queue }, "two");
  upstream.begin(one, { tool: "first" });
  await upstream.settle();
  const both = upstream.begin(one, { tool: "both" });
  upstream.begin(two, { tool: "between" });
  await upstream.clock.advance(60);
  await upstream.endOne();
  await upstream.clock.advance(39);
  expect(both.events.map(({ type }) => type)).toEqual(["queue-enter", "queue-leave", "queue-enter"]);
  await upstream.clock.advance(1);
  expect(await both.outcome).toMatchObject({
    reason: "CONCURRENCY_LIMIT_REACHED",
    metadata: { setting: "queue.max_wait", of: 'group "aws"', position: "1" },
  });
  expect(upstream.running.map(({ tool }) => tool)).toEqual(["between"]);
});

test("a call that is only validated takes no slot and waits for none", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1 });
  upstream.begin(path);
  await upstream.settle();
  const validated = upstream.begin(path, { validateOnly: true });
  await upstream.settle();
  expect(upstream.running).toHaveLength(2);
  expect(validated.events).toEqual([]);
});

test.each([
  ["ends well", (call: LimitedCalls) => call.endOne()],
  ["fails", (call: LimitedCalls) => call.endOne(new GatewayError("UPSTREAM_UNREACHABLE", "down"))],
])("the slot of a call is free again when it %s", async (_, end) => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1, group: aws(1) });
  const [first, second] = [upstream.begin(path), upstream.begin(path)];
  await upstream.settle();
  await end(upstream);
  await first.outcome;
  expect(upstream.running).toHaveLength(1);
  expect(second.events.map(({ type }) => type)).toEqual(["queue-enter", "queue-leave"]);
});

test("the slot of a call is free again when its reader leaves in the middle of its output", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1 });
  const endless = path(makeCall(), makeContext(), async function* () {
    while (true) yield { type: "upstream-delta", text: "x" };
  });
  for await (const _ of endless) break;
  upstream.begin(path);
  await upstream.settle();
  expect(upstream.running).toHaveLength(1);
});

test("a call that waits for its next attempt holds no slot", async () => {
  const upstream = calls();
  const retry = { ...POLICY.retry, maxRetries: 1, backoff: "fixed", initialBackoffMs: 1_000 } as const;
  const policy: Partial<ToolPolicy> = { concurrencyLimit: 1, effectClass: "read", retry };
  const limit = upstream.path(policy);
  const deps = { clock: upstream.clock };
  const step = createRetryStep({ budgets: new RetryBudgets() });
  const retried = step.compile(makeTool(), { ...POLICY, ...policy }, deps, undefined);
  if (retried === undefined) throw new Error("no retry in the path");
  const path: Interceptor = (call, context, next) => retried(call, context, (...attempt) => limit(...attempt, next));
  const context = { deadlineMs: upstream.clock.now() + 60_000 };
  const first = upstream.begin(path, { tool: "first", context });
  await upstream.settle();
  await upstream.endOne(new GatewayError("UPSTREAM_UNREACHABLE", "down"));
  const second = upstream.begin(path, { tool: "second", context });
  await upstream.settle();
  expect(upstream.running.map(({ tool }) => tool)).toEqual(["second"]);
  await upstream.endOne();
  expect(await second.outcome).toBeUndefined();
  await upstream.clock.advance(1_000);
  await upstream.endOne();
  expect(await first.outcome).toBeUndefined();
  expect(first.events.map(({ type }) => type)).toEqual(["upstream-result"]);
});

test("a new version's limit counts for the calls of the old one, and what runs is counted once", async () => {
  const upstream = calls();
  const old = upstream.path({ concurrencyLimit: 1 });
  const begun = [upstream.begin(old), upstream.begin(old), upstream.begin(old)];
  await upstream.settle();
  expect(upstream.running).toHaveLength(1);
  const changed = upstream.path({ concurrencyLimit: 2 });
  await upstream.settle();
  expect(upstream.running).toHaveLength(2);
  const late = upstream.begin(changed);
  await upstream.settle();
  expect(late.events).toMatchObject([{ type: "queue-enter", position: 2 }]);
  void begun;
});

test("while calls wait the tool is degraded, with how many", async () => {
  const upstream = calls();
  const path = upstream.path({ concurrencyLimit: 1, group: aws(5) });
  upstream.begin(path);
  await upstream.settle();
  expect(upstream.availabilityOf(path)).toBeUndefined();
  upstream.begin(path);
  await upstream.settle();
  expect(upstream.availabilityOf(path)).toEqual({
    state: "degraded",
    reason: 'tool "orders" is at its limit (`concurrency_limit`): 1 call runs and 1 waits',
    mend: "Look why its calls take long, or raise `concurrency_limit`.",
  });
});

test("an adaptive limit begins at 20 and follows failures down and quick calls up", async () => {
  const upstream = calls();
  const path = upstream.path({ adaptiveConcurrency: true });
  const run = async (error?: GatewayError): Promise<number> => {
    const begun = Array.from({ length: 100 }, () => upstream.begin(path));
    await upstream.settle();
    const most = upstream.running.length;
    while (upstream.running.length > 0) {
      await upstream.clock.advance(10);
      await upstream.endOne(error);
    }
    for (const { outcome } of begun) await outcome;
    return most;
  };
  expect(await run(new GatewayError("UPSTREAM_TIMEOUT", "slow"))).toBe(20);
  const low = await run(new GatewayError("ARGUMENTS_INVALID", "not the upstream's fault"));
  expect(low).toBeLessThan(12);
  for (let i = 0; i < 10; i++) await run();
  expect(await run()).toBeGreaterThan(low);
});

const TOOLS: Readonly<Record<string, Partial<ToolPolicy>>> = {
  a: { concurrencyLimit: 2, group: aws(3), queue: { maxLength: 4, maxWaitMs: 50 } },
  b: { concurrencyLimit: 1, group: aws(3), queue: QUEUE },
  c: { group: aws(3), queue: { maxLength: 3, maxWaitMs: 20 } },
  d: { concurrencyLimit: 2, queue: { maxLength: 0, maxWaitMs: 20 } },
};

/** Calls of these tools that begin, end, are cancelled and run out of time at random. */
class RandomCalls {
  readonly upstream = calls();
  readonly begun: BegunCall[] = [];
  readonly paths = Object.entries(TOOLS).map(([name, policy]) => ({ name, path: this.upstream.path(policy, name) }));
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = createRandom(seed);
  }

  async step(): Promise<void> {
    const choice = this.#random();
    const tool = this.#oneOf(this.paths);
    if (choice < 0.5 && tool !== undefined) {
      this.begun.push(this.upstream.begin(tool.path, { tool: tool.name }));
    } else if (choice < 0.75) this.#oneOf(this.upstream.running)?.end();
    else if (choice < 0.9) this.#oneOf(this.begun)?.controller.abort(new GatewayError("CALL_CANCELLED", "x"));
    await this.upstream.clock.advance(choice < 0.9 ? 0 : this.#random() * 30);
  }

  /** Calls that run of these tools. */
  running(...names: readonly string[]): number {
    return this.upstream.running.filter(({ tool }) => names.includes(tool)).length;
  }

  /** Whatever still waits comes to its turn or to its time. */
  async end(): Promise<void> {
    while (this.upstream.running.length > 0) await this.upstream.endOne();
    await Promise.all(this.begun.map(({ outcome }) => outcome));
  }

  #oneOf<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(this.#random() * all.length)];
  }
}

test.each(Array.from({ length: 30 }, (_, i) => i + 1))(
  "whatever calls do, no limit is exceeded, no call is stuck and nothing is left of them (seed %i)",
  async (seed) => {
    const all = new RandomCalls(seed);
    for (let i = 0; i < 80; i++) {
      await all.step();
      const held = [all.running("a"), all.running("b"), all.running("a", "b", "c"), all.running("d")];
      expect(
        [2, 1, 3, 2].every((limit, n) => (held[n] ?? 0) <= limit),
        held.join(),
      ).toBe(true);
    }
    await all.end();
    expect(all.upstream.clock.pending).toBe(0);
    expect(all.paths.map(({ path }) => all.upstream.availabilityOf(path))).toEqual(Array(4).fill(undefined));
    expect(all.begun.flatMap(({ controller }) => getEventListeners(controller.signal, "abort"))).toEqual([]);
  },
);
