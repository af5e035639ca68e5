import { expect, test } from "vitest";
import { interleaved, median, percentile } from "../../bench/measure.ts";
import { suiteTable, summarize } from "../../bench/report.ts";
import { SUITES } from "../../bench/subjects.ts";
import { EnvelopeReader, envelope, messagesOf } from "../../bench/wire.ts";

test("the median of an even number of values is the mean of the two in the middle", () => {
  expect(median([9, 1, 4])).toBe(4);
  expect(median([4, 1, 9, 2])).toBe(3);
});

test("a percentile is a value that was measured", () => {
  const values = Array.from({ length: 100 }, (_, i) => i + 1);
  expect(percentile(values, 0.5)).toBe(51);
  expect(percentile(values, 0.99)).toBe(100);
  expect(percentile([], 0.5)).toBeUndefined();
});

test("rounds go forth and back", () => {
  expect(interleaved(["A", "B", "C"], 3).join("")).toBe("ABCCBAABC");
});

test("envelopes are read over any cut of the bytes", () => {
  const bytes = Buffer.concat([
    envelope(Buffer.from("one")),
    envelope(Buffer.from("")),
    envelope(Buffer.from("three")),
  ]);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const reader = new EnvelopeReader();
    const whole = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))];
    expect(messagesOf(whole).map(String)).toEqual(["one", "", "three"]);
  }
});

test("the end of a Connect stream is no message, and its error is raised", () => {
  const end = (text: string): { flags: number; bytes: Buffer } => ({ flags: 2, bytes: Buffer.from(text) });
  expect(messagesOf([end("{}")])).toEqual([]);
  expect(() => messagesOf([end('{"error":{"code":"internal"}}')])).toThrow("internal");
});

test("every baseline is a subject of its own suite", () => {
  for (const suite of SUITES) {
    const names = suite.subjects.map(({ name }) => name);
    for (const { baselines } of suite.subjects) expect(names).toEqual(expect.arrayContaining([...baselines]));
  }
});

test("the report puts ratios to the baselines of the same run", () => {
  const [suite] = SUITES;
  if (suite === undefined) throw new Error("no suite");
  const figures = (count: number): ReturnType<typeof summarize> =>
    summarize([{ count, bytes: 0, seconds: 1, p50: 1, p99: 2, cpuMicros: 10 }]);
  const table = suiteTable(
    suite,
    new Map([
      ["connect-node echo, gRPC", figures(100)],
      ["no-op tool, gRPC", figures(90)],
    ]),
  );
  expect(table.split("\n")).toHaveLength(4);
  expect(table).toContain("connect-node echo, gRPC: 0.90x rate, 1.00x CPU");
});
