import { expect, test } from "vitest";
import { RetryBudgets } from "../../src/pipeline/retry-budget.ts";
import { createFakeClock } from "../core/fake-clock.ts";

const UP = "http://127.0.0.1:7434";

function taken(budgets: RetryBudgets, share: number, clock: ReturnType<typeof createFakeClock>, upstream = UP): number {
  let count = 0;
  while (count < 1_000 && budgets.take(upstream, share, clock)) count += 1;
  return count;
}

test("repetitions stay within their share of the upstream's calls", () => {
  const clock = createFakeClock();
  const budgets = new RetryBudgets();
  for (let i = 0; i < 200; i++) budgets.call(UP, clock);
  expect(taken(budgets, 0.2, clock)).toBe(40);
  expect(taken(budgets, 0.5, clock)).toBe(60);
  expect(taken(budgets, 0.2, clock)).toBe(0);
});

test("a rarely called upstream has 10 of them in 10 s", () => {
  const clock = createFakeClock();
  const budgets = new RetryBudgets();
  budgets.call(UP, clock);
  expect(taken(budgets, 0, clock)).toBe(10);
});

test("upstreams have budgets of their own", () => {
  const clock = createFakeClock();
  const budgets = new RetryBudgets();
  expect(taken(budgets, 0.2, clock)).toBe(10);
  expect(taken(budgets, 0.2, clock, "http://127.0.0.1:1")).toBe(10);
});

test("what is older than 10 s counts no more", async () => {
  const clock = createFakeClock();
  const budgets = new RetryBudgets();
  for (let i = 0; i < 100; i++) budgets.call(UP, clock);
  await clock.advance(5_000);
  expect(taken(budgets, 0.5, clock)).toBe(50);
  await clock.advance(5_000);
  expect(taken(budgets, 0.5, clock)).toBe(0);
  await clock.advance(5_000);
  expect(taken(budgets, 0.5, clock)).toBe(10);
  await clock.advance(3_600_000);
  expect(taken(budgets, 0.5, clock)).toBe(10);
});

test("upstreams that are called no more are forgotten", async () => {
  const clock = createFakeClock();
  const budgets = new RetryBudgets();
  for (let i = 0; i < 10_000; i++) {
    budgets.call(`http://127.0.0.1:${i}`, clock);
    await (i % 100 === 0 ? clock.advance(1_000) : undefined);
  }
  expect(budgets.size).toBeLessThan(2_500);
});
