import { expect, test } from "vitest";
import { TICK, withTicks } from "../../src/service/ticks.ts";
import { createFakeClock } from "../core/fake-clock.ts";

/** A source that gives what it is told to. */
function source<T>() {
  const waiting: PromiseWithResolvers<IteratorResult<T, void>>[] = [];
  let returned = false;
  return {
    give: (value: T): void => waiting.shift()?.resolve({ done: false, value }),
    end: (): void => waiting.shift()?.resolve({ done: true, value: undefined }),
    fail: (error: Error): void => waiting.shift()?.reject(error),
    returned: () => returned,
    events: {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          const step = Promise.withResolvers<IteratorResult<T, void>>();
          waiting.push(step);
          return step.promise;
        },
        return: async () => {
          returned = true;
          return { done: true as const, value: undefined };
        },
      }),
    } satisfies AsyncIterable<T>,
  };
}

test("each silence gives a tick, and an event begins a new one", async () => {
  const clock = createFakeClock();
  const { give, events } = source<string>();
  const ticking = withTicks(events, 1000, clock);
  const first = ticking.next();
  await clock.advance(999);
  give("a");
  expect((await first).value).toBe("a");
  const second = ticking.next();
  await clock.advance(999);
  expect(await Promise.race([second, Promise.resolve("nothing yet")])).toBe("nothing yet");
  await clock.advance(1);
  expect((await second).value).toBe(TICK);
  const third = ticking.next();
  await clock.advance(1000);
  expect((await third).value).toBe(TICK);
});

test("an event that comes after a tick is not lost", async () => {
  const clock = createFakeClock();
  const { give, end, events } = source<string>();
  const ticking = withTicks(events, 1000, clock);
  const tick = ticking.next();
  await clock.advance(1000);
  expect((await tick).value).toBe(TICK);
  const next = ticking.next();
  give("a");
  expect((await next).value).toBe("a");
  const last = ticking.next();
  await clock.advance(0);
  end();
  expect((await last).done).toBe(true);
  expect(clock.pending).toBe(0);
});

test("a reader that does not read gets no tick for that time", async () => {
  const clock = createFakeClock();
  const { give, events } = source<string>();
  const ticking = withTicks(events, 1000, clock);
  const first = ticking.next();
  await clock.advance(0);
  give("a");
  await first;
  await clock.advance(10_000);
  const second = ticking.next();
  await clock.advance(500);
  give("b");
  expect((await second).value).toBe("b");
});

test("the end, an error and an early return free everything", async () => {
  const clock = createFakeClock();
  const failing = source<string>();
  const failed = withTicks(failing.events, 1000, clock).next();
  await clock.advance(0);
  failing.fail(new Error("no"));
  await expect(failed).rejects.toThrow("no");
  const left = source<string>();
  const ticking = withTicks(left.events, 1000, clock);
  const first = ticking.next();
  await clock.advance(0);
  left.give("a");
  await first;
  await ticking.return();
  expect(left.returned()).toBe(true);
  expect(clock.pending).toBe(0);
});
