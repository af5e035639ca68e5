import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { durationMs, toDuration, toTimestamp } from "../../src/wire/durations.ts";
import { gatewayError } from "./errors.ts";

const range = { minMs: 1000, maxMs: 5000, words: "from 1 s to 5 s" };

function duration(seconds: bigint, nanos = 0): Duration {
  return create(DurationSchema, { seconds, nanos });
}

test("a duration is read in milliseconds, with fractions", () => {
  expect(durationMs("lease", duration(1n, 500_000), range)).toBe(1000.5);
  expect(durationMs("lease", undefined, range)).toBeUndefined();
});

test("a duration out of its range is refused, naming the field, the range and what was got", () => {
  const error = gatewayError(() => durationMs("lease", duration(6n), range));
  expect(error.reason).toBe("REQUEST_INVALID");
  expect(error.message).toBe("`lease` must be from 1 s to 5 s, got 6 s");
  expect(error.violations).toEqual([
    { field: "lease", reason: "OUT_OF_RANGE", description: "must be from 1 s to 5 s, got 6 s" },
  ]);
});

test.each([
  ["signs that differ", duration(2n, -1)],
  ["nanoseconds beyond a second", duration(2n, 1_000_000_000)],
  ["seconds beyond ten thousand years", duration(315_576_000_001n)],
])("a duration with %s is malformed", (_what, value) => {
  expect(gatewayError(() => durationMs("lease", value, range)).violations[0]?.reason).toBe("MALFORMED");
});

test("milliseconds become seconds and nanoseconds without a rounding error", () => {
  expect(toDuration(1234.567)).toEqual({ seconds: 1n, nanos: 234_567_000 });
  expect(toDuration(0.1)).toEqual({ seconds: 0n, nanos: 100_000 });
  expect(toTimestamp(1_700_000_000_123)).toEqual({ seconds: 1_700_000_000n, nanos: 123_000_000 });
});
