import { expect, test } from "vitest";
import { canonicalJson, jsonEqual, parseJson, stringifyJson } from "../../src/core/json.ts";

test("a 64-bit integer keeps all its digits from text to text", () => {
  const text = '{"id":871234567890123457,"f":0.1,"list":[9223372036854775807,-9007199254740993]}';
  expect(stringifyJson(parseJson(text))).toBe(text);
});

test("a safe integer stays a number", () => {
  expect(parseJson("[9007199254740991,1e3,0.5]")).toEqual([9007199254740991, 1000, 0.5]);
});

test("a number beyond a double's range is refused", () => {
  expect(() => parseJson('{"n":1e400}')).toThrow(/1e400 is out of range/);
});

test("nesting over the limit is refused before it is parsed", () => {
  expect(() => parseJson("[".repeat(200_000) + "]".repeat(200_000))).toThrow(/nested deeper than 128 levels/);
  expect(parseJson(`"${"[".repeat(500)}"`)).toBe("[".repeat(500));
});

test("zero as a number and zero as text are not equal", () => {
  expect(jsonEqual(0, "0")).toBe(false);
  expect(jsonEqual({ a: 1, b: [2n ** 60n] }, { b: [2n ** 60n], a: 1 })).toBe(true);
});

test("canonical text does not depend on the order of keys", () => {
  expect(canonicalJson({ b: 1, a: { d: 2, c: 3 } })).toBe('{"a":{"c":3,"d":2},"b":1}');
});

test("a key named __proto__ stays an own key", () => {
  const value = parseJson('{"__proto__":{"admin":true}}');
  expect(Object.hasOwn(value as object, "__proto__")).toBe(true);
  expect(stringifyJson(value)).toBe('{"__proto__":{"admin":true}}');
});
