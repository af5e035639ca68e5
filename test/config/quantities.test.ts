import { expect, test } from "vitest";
import { ownText } from "../../src/config/own-values.ts";
import { parseSize, SIZE_SCHEMA } from "../../src/config/sizes.ts";
import { DURATION_SCHEMA, formatDuration, parseDuration } from "../../src/core/durations.ts";

test("durations are read with their units, large before small [S2-59]", () => {
  const cases = {
    "500ms": 500,
    "3s": 3_000,
    "10s": 10_000,
    "60s": 60_000,
    "1m30s": 90_000,
    "2h": 7_200_000,
    "1h0m1s5ms": 3_601_005,
    "1.5s": 1_500,
    "0s": 0,
  };
  for (const [text, ms] of Object.entries(cases)) expect(parseDuration(text), text).toBe(ms);
});

test("anything else is no duration", () => {
  for (const text of [
    "",
    "3",
    "s",
    "3 s",
    "-3s",
    "3S",
    "30s1m",
    "3s3s",
    "1d",
    "3sec",
    "1e3s",
    "0x3s",
    "٣s",
    "3s\n",
    "1.s",
  ]) {
    expect(parseDuration(text), JSON.stringify(text)).toBeUndefined();
  }
});

test("durations are written as they are read", () => {
  for (const text of ["0s", "1ms", "999ms", "1s", "1m30s", "2h", "1h1m1s1ms", "24h"]) {
    expect(formatDuration(parseDuration(text) ?? Number.NaN)).toBe(text);
  }
});

test("sizes are bytes, or text with a unit", () => {
  const cases: readonly (readonly [unknown, number])[] = [
    [1, 1],
    [16_384, 16_384],
    ["512B", 512],
    ["16KB", 16_000],
    ["4MiB", 4_194_304],
    ["4 MiB", 4_194_304],
    ["1GB", 1e9],
    ["2GiB", 2_147_483_648],
    ["1KiB", 1_024],
    ["3MB", 3e6],
  ];
  for (const [size, bytes] of cases) expect(parseSize(size), String(size)).toBe(bytes);
  for (const size of ["4", "4M", "4mb", "MiB", "-1KB", "1.5MiB", "", 1.5, null, [], {}]) {
    expect(parseSize(size), JSON.stringify(size)).toBeUndefined();
  }
});

test("the schemas for editors allow what the readers read", () => {
  expect(new RegExp(ownText(DURATION_SCHEMA, "pattern")).test("1m30s")).toBe(true);
  expect(new RegExp(ownText(DURATION_SCHEMA, "pattern")).test("3")).toBe(false);
  expect(new RegExp(ownText(SIZE_SCHEMA, "pattern")).test("4MiB")).toBe(true);
});
