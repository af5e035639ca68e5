import { expect, test } from "vitest";
import { createFakeClock } from "./fake-clock.ts";

test("timers run in order of their time, then of their creation, and only when time moves", async () => {
  const clock = createFakeClock(1_000);
  const ran: string[] = [];
  clock.after(20, () => ran.push("b"));
  clock.after(10, () => ran.push("a"));
  clock.after(20, () => ran.push("c"));
  await clock.advance(19);
  expect(ran).toEqual(["a"]);
  expect(clock.nextInMs).toBe(1);
  await clock.advance(1);
  expect(ran).toEqual(["a", "b", "c"]);
  expect([clock.now(), clock.monotonicMs(), clock.pending]).toEqual([1_020, 20, 0]);
});

test("a timer set by work that waits on a promise runs in the same advance", async () => {
  const clock = createFakeClock();
  const ran: number[] = [];
  void Promise.resolve().then(() =>
    clock.after(5, () => {
      ran.push(clock.monotonicMs());
      clock.after(5, () => ran.push(clock.monotonicMs()));
    }),
  );
  await clock.advance(10);
  expect(ran).toEqual([5, 10]);
});

test("a disposed timer never runs", async () => {
  const clock = createFakeClock();
  let ran = false;
  const timer = clock.after(5, () => {
    ran = true;
  });
  timer[Symbol.dispose]();
  await clock.advance(10);
  expect([ran, clock.pending]).toEqual([false, 0]);
});
