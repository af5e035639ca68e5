import { expect, test } from "vitest";
import type { GroupPolicy, RateLimit } from "../../../src/core/step.ts";
import { createRateLimitStep } from "../../../src/pipeline/steps/rate-limit.ts";
import { makeTool, POLICY } from "../fixtures.ts";
import { LimitedCalls } from "./limited-calls.ts";

function rate(requests: number, perMs = 1_000, burst = requests): RateLimit {
  return { requests, perMs, burst };
}

function aws(rateLimit: RateLimit): GroupPolicy {
  return { name: "aws", maxParallelCalls: undefined, rateLimit };
}

function calls(perCaller?: RateLimit): LimitedCalls {
  return new LimitedCalls(createRateLimitStep(() => perCaller));
}

/** How many of these calls get through, at once. */
async function passed(
  upstream: LimitedCalls,
  begin: () => ReturnType<LimitedCalls["begin"]>,
  count: number,
): Promise<number> {
  const before = upstream.running.length;
  const begun = Array.from({ length: count }, begin);
  await upstream.settle();
  void begun;
  return upstream.running.length - before;
}

test("a tool without a rate limit has no such step in its path", () => {
  const compiled = createRateLimitStep().compile(makeTool(), POLICY, calls(), undefined);
  expect(compiled).toBeUndefined();
});

test("a call beyond the rate is refused with when to call again, and is let through then", async () => {
  const upstream = calls();
  const path = upstream.path({ rateLimit: rate(4, 1_000, 2) });
  expect(await passed(upstream, () => upstream.begin(path), 3)).toBe(2);
  const refused = await upstream.begin(path).outcome;
  expect(refused).toMatchObject({
    reason: "RATE_LIMITED",
    status: "RESOURCE_EXHAUSTED",
    message:
      'tool "orders" was not called: tool "orders" may have 4 calls in 1000 ms, 2 at once (`rate_limit`); call again in 250 ms',
    effect: "none",
    retryable: true,
    retryAfterMs: 250,
    metadata: { tool: "orders", limit: "rate", of: 'tool "orders"', requests: "4", per_ms: "1000", burst: "2" },
  });
  await upstream.clock.advance(250);
  expect(await passed(upstream, () => upstream.begin(path), 2)).toBe(1);
});

test("tools of a group share its rate, and a call that one limit refuses takes nothing of the others", async () => {
  const upstream = calls();
  const one = upstream.path({ rateLimit: rate(5), group: aws(rate(3)) }, "one");
  const two = upstream.path({ group: aws(rate(3)) }, "two");
  expect(await passed(upstream, () => upstream.begin(one), 2)).toBe(2);
  expect(await passed(upstream, () => upstream.begin(two), 2)).toBe(1);
  const refused = await upstream.begin(one).outcome;
  expect(refused?.metadata).toMatchObject({ of: 'group "aws"' });
  expect(refused?.message).toContain("`shared_rate_limit`");
  await upstream.clock.advance(1_000);
  expect(await passed(upstream, () => upstream.begin(one), 9)).toBe(3);
  await upstream.clock.advance(400);
  // Five of its own tool are not used up: the group allows one more.
  expect(await passed(upstream, () => upstream.begin(one), 9)).toBe(1);
});

test("each caller has a rate of its own, whatever tool it calls", async () => {
  const upstream = calls(rate(2));
  const paths = ["one", "two"].map((name) => upstream.path({}, name));
  const by = (id: string, which: number) => {
    const path = paths[which];
    if (path === undefined) throw new Error("no such path");
    return upstream.begin(path, { context: { principal: { id, roles: [] } } });
  };
  expect(await passed(upstream, () => by("ann", 0), 1)).toBe(1);
  expect(await passed(upstream, () => by("ann", 1), 3)).toBe(1);
  expect(await passed(upstream, () => by("bob", 1), 3)).toBe(2);
  expect((await by("ann", 0).outcome)?.message).toBe(
    'tool "one" was not called: this caller may have 2 calls in 1000 ms (`rate_limit of gateway.yaml`); call again in 500 ms',
  );
});

test("callers without end take no memory without end", async () => {
  const upstream = calls(rate(1, 60_000));
  const path = upstream.path({});
  for (let i = 0; i < 10_001; i++) upstream.begin(path, { context: { principal: { id: `c${i}`, roles: [] } } });
  await upstream.settle();
  expect(upstream.running).toHaveLength(10_001);
  // The one whose last call lies back the furthest was forgotten, the others were not.
  const again = (id: string) => upstream.begin(path, { context: { principal: { id, roles: [] } } });
  expect((await again("c10000").outcome)?.reason).toBe("RATE_LIMITED");
  again("c0");
  await upstream.settle();
  expect(upstream.running).toHaveLength(10_002);
});

test("a call that is only validated counts for no rate", async () => {
  const upstream = calls(rate(1));
  const path = upstream.path({ rateLimit: rate(1) });
  expect(await passed(upstream, () => upstream.begin(path, { validateOnly: true }), 5)).toBe(5);
  expect(await passed(upstream, () => upstream.begin(path), 2)).toBe(1);
});

test("a new version of a tool goes on with the bucket of the old", async () => {
  const upstream = calls();
  const old = upstream.path({ rateLimit: rate(2) });
  expect(await passed(upstream, () => upstream.begin(old), 2)).toBe(2);
  const changed = upstream.path({ rateLimit: rate(2) });
  expect(await passed(upstream, () => upstream.begin(changed), 2)).toBe(0);
});
