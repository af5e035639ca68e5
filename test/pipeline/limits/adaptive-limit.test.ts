import { expect, test } from "vitest";
import { AdaptiveLimit } from "../../../src/pipeline/limits/adaptive-limit.ts";

/** Calls that fill a limit, and take as long as the upstream needs for so many. */
class Load {
  readonly limit: AdaptiveLimit;
  #nowMs = 0;

  constructor(most: number) {
    this.limit = new AdaptiveLimit(most);
  }

  /** So many windows of ten calls each. */
  windows(count: number, latencyMs: (inFlight: number) => number, overloaded = false): void {
    for (let i = 0; i < count; i++) {
      const inFlight = this.limit.limit;
      for (let n = 0; n < 10; n++) {
        this.#nowMs += 12;
        this.limit.add({ latencyMs: latencyMs(inFlight), inFlight, overloaded }, this.#nowMs);
      }
    }
  }
}

/** An upstream that serves so many at a time, each in 20 ms; more wait there. */
const upstreamOf = (capacity: number) => (inFlight: number) => 20 * Math.max(1, inFlight / capacity);

test("a limit begins at 20, or at its ceiling where that is lower", () => {
  expect(new AdaptiveLimit(1_000).limit).toBe(20);
  expect(new AdaptiveLimit(5).limit).toBe(5);
});

test("it grows to its ceiling while calls are as quick as ever and it is used", () => {
  const load = new Load(100);
  load.windows(200, () => 20);
  expect(load.limit.limit).toBe(100);
});

test("it does not grow where it is not used", () => {
  const limit = new AdaptiveLimit(100);
  for (let i = 0; i < 2_000; i++) limit.add({ latencyMs: 20, inFlight: 2, overloaded: false }, i * 20);
  expect(limit.limit).toBe(20);
});

test("it settles near what the upstream bears, far below its ceiling", () => {
  const load = new Load(1_000);
  load.windows(10, () => 20);
  load.windows(100, upstreamOf(30));
  expect(load.limit.limit).toBeGreaterThan(20);
  expect(load.limit.limit).toBeLessThan(150);
});

test("it falls when the upstream gets slow, and comes back with it", () => {
  const load = new Load(50);
  load.windows(100, () => 20);
  expect(load.limit.limit).toBe(50);
  load.windows(20, () => 400);
  const low = load.limit.limit;
  expect(low).toBeLessThan(15);
  load.windows(200, () => 20);
  expect(load.limit.limit).toBeGreaterThan(low * 2);
});

test("calls that fail for overload lower it step by step, never below 1", () => {
  const load = new Load(50);
  load.windows(1, () => 20, true);
  expect(load.limit.limit).toBe(18);
  load.windows(200, () => 20, true);
  expect(load.limit.limit).toBe(1);
});

test("a lower ceiling counts at once", () => {
  const limit = new AdaptiveLimit(50);
  limit.setMost(3);
  expect(limit.limit).toBe(3);
});
