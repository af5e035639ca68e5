import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { eventsUntil, linkSignals, raceSignal } from "../../src/core/signal.ts";
import { createFakeClock } from "./fake-clock.ts";

const GONE = new GatewayError("CALL_CANCELLED", "the caller went away");

function never(): Promise<never> {
  return new Promise(() => undefined);
}

async function collect<T>(events: AsyncIterable<T>, into: T[] = []): Promise<T[]> {
  for await (const event of events) into.push(event);
  return into;
}

test("a linked signal aborts with the reason of the first parent that does", () => {
  const a = new AbortController();
  const b = new AbortController();
  using link = linkSignals(a.signal, b.signal);
  b.abort(GONE);
  a.abort(new Error("later"));
  expect(link.signal.reason).toBe(GONE);
});

test("a signal linked to one that has aborted is aborted from the start", () => {
  using link = linkSignals(new AbortController().signal, AbortSignal.abort(GONE));
  expect(link.signal.reason).toBe(GONE);
});

test("aborting a linked signal does not touch its parents", () => {
  const parent = new AbortController();
  using link = linkSignals(parent.signal);
  link.abort(GONE);
  expect([link.signal.aborted, parent.signal.aborted]).toEqual([true, false]);
});

test("a disposed link leaves no listener on its parents", () => {
  const parents = [new AbortController().signal, new AbortController().signal];
  for (let i = 0; i < 3; i++) linkSignals(...parents)[Symbol.dispose]();
  expect(parents.map((signal) => getEventListeners(signal, "abort").length)).toEqual([0, 0]);
});

test("a race settles as its promise does and leaves no listener", async () => {
  const { signal } = new AbortController();
  expect(await raceSignal(Promise.resolve(7), signal)).toBe(7);
  await expect(raceSignal(Promise.reject(new Error("own")), signal)).rejects.toThrow("own");
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a race ends with the signal's reason and swallows what the promise does later", async () => {
  const controller = new AbortController();
  let fail: (error: Error) => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const race = raceSignal(late, controller.signal);
  controller.abort(GONE);
  await expect(race).rejects.toBe(GONE);
  fail(new Error("too late"));
  await expect(raceSignal(never(), controller.signal)).rejects.toBe(GONE);
});

test("events pass until their source ends, and nothing is left on the signal", async () => {
  const { signal } = new AbortController();
  const clock = createFakeClock();
  async function* source(): AsyncGenerator<number> {
    yield 1;
    yield 2;
  }
  expect(await collect(eventsUntil(source(), signal, clock))).toEqual([1, 2]);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
  expect(clock.pending).toBe(0);
});

test("a source that ignores its signal is cut with the signal's reason after the grace", async () => {
  const controller = new AbortController();
  const clock = createFakeClock();
  async function* source(): AsyncGenerator<number> {
    yield 1;
    await never();
  }
  const got: number[] = [];
  const run = collect(eventsUntil(source(), controller.signal, clock), got);
  const cut = expect(run).rejects.toBe(GONE);
  await clock.advance(1_000);
  controller.abort(GONE);
  await clock.advance(24);
  expect(clock.pending).toBe(1);
  await clock.advance(1);
  await cut;
  expect([got, clock.pending]).toEqual([[1], 0]);
});

test("a source that goes on giving events after the abort is cut as well", async () => {
  const controller = new AbortController();
  const [clock, sourceClock] = [createFakeClock(), createFakeClock()];
  async function* source(): AsyncGenerator<number> {
    for (let i = 0; ; i++) {
      yield i;
      await new Promise<void>((resolve) => void sourceClock.after(10, resolve));
    }
  }
  const got: number[] = [];
  const run = collect(eventsUntil(source(), controller.signal, clock), got);
  const cut = expect(run).rejects.toBe(GONE);
  await clock.advance(5);
  controller.abort(GONE);
  for (let i = 0; i < 5; i++) {
    await sourceClock.advance(10);
    expect(clock.pending).toBeLessThanOrEqual(1);
    await clock.advance(10);
  }
  await cut;
  expect(got).toEqual([0, 1, 2, 3]);
  expect(clock.pending).toBe(0);
});

test("a source that reacts within the grace ends with its own error", async () => {
  const controller = new AbortController();
  const clock = createFakeClock();
  const own = new GatewayError("CALL_CANCELLED", "cancelled after the request was sent", { effect: "unknown" });
  async function* source(): AsyncGenerator<number> {
    yield 1;
    await new Promise<void>((resolve) => controller.signal.addEventListener("abort", () => resolve()));
    throw own;
  }
  const run = expect(collect(eventsUntil(source(), controller.signal, clock))).rejects.toBe(own);
  await clock.advance(0);
  controller.abort(GONE);
  await run;
  expect(clock.pending).toBe(0);
});

test("a slow reader that comes back after the abort still lets the source end by itself", async () => {
  const controller = new AbortController();
  const clock = createFakeClock();
  const own = new GatewayError("CALL_CANCELLED", "own");
  async function* source(): AsyncGenerator<number> {
    yield 1;
    throw own;
  }
  const events = eventsUntil(source(), controller.signal, clock)[Symbol.asyncIterator]();
  await events.next();
  controller.abort(GONE);
  await clock.advance(10_000);
  await expect(events.next()).rejects.toBe(own);
});

test("the error of a cut can be chosen by who knows more than the signal", async () => {
  const controller = new AbortController();
  const clock = createFakeClock();
  const better = new GatewayError("CALL_CANCELLED", "cut", { effect: "unknown" });
  async function* source(): AsyncGenerator<number> {
    yield await never();
  }
  const options = { graceMs: 5, cutError: () => better };
  const run = expect(collect(eventsUntil(source(), controller.signal, clock, options))).rejects.toBe(better);
  await clock.advance(0);
  controller.abort(GONE);
  await clock.advance(5);
  await run;
});

test("a source is not begun when the signal has aborted before", async () => {
  let begun = false;
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]() {
      begun = true;
      return { next: never };
    },
  };
  await expect(collect(eventsUntil(source, AbortSignal.abort(GONE), createFakeClock()))).rejects.toBe(GONE);
  expect(begun).toBe(false);
});

test("leaving early returns the source, and a source that fails while it returns disturbs nobody", async () => {
  let returned = false;
  const { signal } = new AbortController();
  async function* source(): AsyncGenerator<number> {
    try {
      yield 1;
      yield 2;
    } finally {
      returned = true;
      await Promise.reject(new Error("while closing"));
    }
  }
  for await (const event of eventsUntil(source(), signal, createFakeClock())) {
    expect(event).toBe(1);
    break;
  }
  expect(returned).toBe(true);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});
