import { expect, test } from "vitest";
import { didYouMean, nearestWords } from "../../src/core/nearest.ts";
import { cpuMs } from "../config/cpu-time.ts";

test("the nearest words come best first, without regard to case", () => {
  expect(nearestWords("Order_statsu", ["order_status", "order_list", "refund", "order_state"])).toEqual([
    "order_state",
    "order_status",
  ]);
});

test("a word that holds the wanted one, or is held by it, is near", () => {
  expect(nearestWords("status", ["order_status_by_number", "weather"])).toEqual(["order_status_by_number"]);
  expect(nearestWords("order_status_please", ["order_status", "xy"])).toEqual(["order_status"]);
});

test("nothing is near a word like no other", () => {
  expect(nearestWords("zzzzzz", ["order_status", "weather"])).toEqual([]);
  expect(didYouMean("zzzzzz", ["order_status"])).toBe("");
});

test("words of equal distance come in a fixed order and at most as many as asked for", () => {
  expect(nearestWords("ab", ["ad", "ac", "ae", "af"], 2)).toEqual(["ac", "ad"]);
});

test("the question names each near word", () => {
  expect(didYouMean("unist", ["units", "unit", "location"])).toBe('did you mean "unit", "units"?');
});

test("ten thousand candidates and a very long word take no time to speak of", () => {
  const candidates = Array.from({ length: 10_000 }, (_, i) => `tool_with_some_name_${i}`);
  const spent = cpuMs(() => {
    nearestWords("x".repeat(1_000_000), candidates);
    nearestWords("tool_with_some_name_12345", candidates);
  });
  expect(spent).toBeLessThan(2_000);
});
