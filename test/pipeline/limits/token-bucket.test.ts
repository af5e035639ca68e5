import { expect, test } from "vitest";
import { StateTable } from "../../../src/pipeline/limits/state-table.ts";
import { TokenBucket } from "../../../src/pipeline/limits/token-bucket.ts";
import { createRandom } from "../../core/random.ts";

function taken(bucket: TokenBucket, rate: Parameters<TokenBucket["take"]>[0], nowMs: number): boolean {
  if (bucket.waitMs(rate, nowMs) > 0) return false;
  bucket.take(rate, nowMs);
  return true;
}

test("a bucket gives its burst at once and then one token in each part of the time", () => {
  const bucket = new TokenBucket();
  const rate = { requests: 10, perMs: 1_000, burst: 3 };
  expect([0, 0, 0, 0].map((now) => taken(bucket, rate, now))).toEqual([true, true, true, false]);
  expect(bucket.waitMs(rate, 0)).toBe(100);
  expect(bucket.waitMs(rate, 60)).toBe(40);
  expect([99, 100, 100, 200].map((now) => taken(bucket, rate, now))).toEqual([false, true, false, true]);
  expect(bucket.isFull(200 + 299)).toBe(false);
  expect(bucket.isFull(200 + 300)).toBe(true);
});

test("a rate that divides into fractions gives its whole burst", () => {
  for (const requests of [3, 7, 9, 11, 997]) {
    const bucket = new TokenBucket();
    const rate = { requests, perMs: 1_000, burst: requests };
    let given = 0;
    for (let i = 0; i < requests + 5; i++) if (taken(bucket, rate, 123_456_789.1)) given++;
    expect(given).toBe(requests);
  }
});

test("over any time no more is given than the burst and what flowed in", () => {
  const random = createRandom(7);
  for (let round = 0; round < 50; round++) {
    const rate = {
      requests: 1 + Math.floor(random() * 50),
      perMs: 100 + random() * 5_000,
      burst: 1 + Math.floor(random() * 20),
    };
    const bucket = new TokenBucket();
    let nowMs = random() * 1e9;
    const startMs = nowMs;
    let given = 0;
    for (let i = 0; i < 500; i++) {
      nowMs += random() < 0.5 ? 0 : random() * 100;
      if (taken(bucket, rate, nowMs)) given++;
      expect(given).toBeLessThanOrEqual(rate.burst + ((nowMs - startMs) * rate.requests) / rate.perMs + 1e-3);
    }
    const waitMs = bucket.waitMs(rate, nowMs);
    expect(taken(bucket, rate, nowMs + waitMs)).toBe(true);
  }
});

test("a lower rate counts at once, and nobody waits longer than its bucket takes to fill", () => {
  const bucket = new TokenBucket();
  const slow = { requests: 1, perMs: 86_400_000, burst: 100 };
  for (let i = 0; i < 100; i++) bucket.take(slow, 0);
  expect(bucket.waitMs({ requests: 10, perMs: 1_000, burst: 5 }, 0)).toBe(100);
});

test("a table that is full forgets what is at rest before what is not, and else the one asked for least lately", () => {
  const resting = new Set(["b"]);
  const table = new StateTable<{ readonly key: string }>(3, ({ key }) => resting.has(key));
  const of = (key: string) => table.of(key, () => ({ key }));
  const [a, b, c] = [of("a"), of("b"), of("c")];
  of("d");
  expect(table.size).toBe(3);
  expect([of("a") === a, of("c") === c]).toEqual([true, true]);
  resting.clear();
  expect(of("b")).not.toBe(b);
  expect(table.size).toBe(3);
  expect([of("a") === a, of("c") === c]).toEqual([true, true]);
});
