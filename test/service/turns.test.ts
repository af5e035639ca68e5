import { expect, test } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { Turns } from "../../src/service/turns.ts";
import { CLIENTS, collect } from "./clients.ts";
import { completed } from "./fake-registry.ts";
import { serve } from "./serve.ts";

/** A clock on which each look takes a millisecond. */
function countingClock() {
  let ms = 0;
  return { ...systemClock, monotonicMs: () => ms++ };
}

test("work that goes on gives the event loop its turn after a slice of time", async () => {
  const turns = new Turns(countingClock());
  let looped = 0;
  const timer = setInterval(() => undefined, 1e6);
  const count = (): void => {
    looped++;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  let waited = 0;
  for (let i = 0; i < 100; i++) {
    const turn = turns.next();
    if (turn !== undefined) waited++;
    await turn;
  }
  clearImmediate(immediate);
  clearInterval(timer);
  expect(waited).toBeGreaterThan(2);
  expect(waited).toBeLessThan(20);
  expect(looped).toBeGreaterThan(2);
});

test("those who wait go on one by one, in the order they came", async () => {
  const turns = new Turns(countingClock());
  const order: string[] = [];
  const work = async (name: string, pieces: number): Promise<void> => {
    for (let i = 0; i < pieces; i++) {
      await turns.next();
      order.push(name);
    }
  };
  const long = work("long", 60);
  const short = work("short", 3);
  await short;
  expect(order.filter((name) => name === "long").length).toBeLessThan(20);
  await long;
});

test("a burst of events in one stream leaves time for others", async () => {
  await using served = await serve({ clock: countingClock() });
  let looped = 0;
  let done = false;
  const count = (): void => {
    looped++;
    if (!done) setImmediate(count);
  };
  let during = 0;
  served.registry.add({ name: "burst" }, async function* () {
    const before = looped;
    for (let i = 0; i < 100; i++) yield { type: "delta", index: 0, text: "x" };
    during = looped - before;
    yield completed();
  });
  using client = CLIENTS["grpc-js"]?.(served.url) ?? expect.unreachable();
  setImmediate(count);
  await collect(client.stream({ invocation: { name: "burst" } }));
  done = true;
  expect(during).toBeGreaterThan(2);
});
