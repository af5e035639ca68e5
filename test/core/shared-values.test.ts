import { expect, test } from "vitest";
import { freezeJson, SharedResults } from "../../src/core/shared-values.ts";

test("a frozen value is frozen with all it holds", () => {
  const value = freezeJson({ a: [{ b: 1 }], c: null, d: "text" });
  expect([value, value.a, value.a[0]].every((part) => Object.isFrozen(part))).toBe(true);
});

test("of a frozen value the result is worked out once, of another each time", () => {
  let count = 0;
  const results = new SharedResults<number>();
  const work = (): number => ++count;
  const shared = Object.freeze({});
  expect([results.of(shared, work), results.of(shared, work)]).toEqual([1, 1]);
  const own = {};
  expect([results.of(own, work), results.of(own, work)]).toEqual([2, 3]);
});

test("a result that is not to be kept is worked out again, and one that is kept is frozen as asked", () => {
  const results = new SharedResults<{ readonly text: string }>(Object.freeze);
  const shared = Object.freeze({});
  const isKept = ({ text }: { readonly text: string }): boolean => text !== "not yet";
  const first = results.of(shared, () => ({ text: "not yet" }), isKept);
  const second = results.of(shared, () => ({ text: "now" }), isKept);
  expect([first, second].map((result) => Object.isFrozen(result))).toEqual([false, true]);
  expect(results.of(shared, () => ({ text: "later" }), isKept)).toBe(second);
});
