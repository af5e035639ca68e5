import { getEventListeners } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { createFakeClock } from "./fake-clock.ts";

afterEach(() => vi.useRealTimers());

test("a timer of more than 2^31 ms runs at its time and not at once", () => {
  vi.useFakeTimers();
  const delayMs = 2 ** 31 + 5_000;
  let ran = 0;
  systemClock.after(delayMs, () => {
    ran++;
  });
  vi.advanceTimersByTime(delayMs - 1);
  expect(ran).toBe(0);
  vi.advanceTimersByTime(1);
  expect(ran).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test("disposing a long timer cancels it also after it was armed again", () => {
  vi.useFakeTimers();
  let ran = false;
  const timer = systemClock.after(2 ** 31 + 5_000, () => {
    ran = true;
  });
  vi.advanceTimersByTime(2 ** 31);
  timer[Symbol.dispose]();
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(10_000);
  expect(ran).toBe(false);
});

test("the system clock tells wall and monotonic time", () => {
  const before = systemClock.monotonicMs();
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1_000);
  expect(systemClock.monotonicMs()).toBeGreaterThanOrEqual(before);
});

test("sleep ends after its time and leaves no listener on the signal", async () => {
  const clock = createFakeClock();
  const { signal } = new AbortController();
  const slept = sleep(clock, 1_000, signal);
  await clock.advance(1_000);
  await slept;
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("sleep ends at once with the signal's reason and frees its timer", async () => {
  const clock = createFakeClock();
  const controller = new AbortController();
  const reason = new GatewayError("CALL_CANCELLED", "the caller went away");
  const slept = sleep(clock, 1_000, controller.signal);
  controller.abort(reason);
  await expect(slept).rejects.toBe(reason);
  expect(clock.pending).toBe(0);
  await expect(sleep(clock, 1_000, controller.signal)).rejects.toBe(reason);
  expect(clock.pending).toBe(0);
});
