import { expect, test } from "vitest";
import {
  canonicalJson,
  jsonEqual,
  jsonPointer,
  jsonTypeName,
  ownValue,
  parseJson,
  pointerSteps,
  stringifyJson,
} from "../../src/core/json.ts";
import { cpuMs } from "../config/cpu-time.ts";

test("a 64-bit integer keeps all its digits from text to text [A-D03]", () => {
  const text = '{"id":871234567890123457,"f":0.1,"list":[9223372036854775807,-9007199254740993]}';
  expect(stringifyJson(parseJson(text))).toBe(text);
});

test("a safe integer stays a number", () => {
  expect(parseJson("[9007199254740991,1e3,0.5]")).toEqual([9007199254740991, 1000, 0.5]);
});

test("a number beyond a double's range is refused", () => {
  expect(() => parseJson('{"n":1e400}')).toThrow(/1e400 is out of range/);
});

test("numbers with fractions, signs and exponents are read as JSON reads them", () => {
  const text = "[0.14285714285714285,-1.5e-7,1E+2,-0.5,1.7976931348623157e308,12345678901234567890.5,1e999]";
  expect(parseJson(text.replace(",1e999", ""))).toEqual(JSON.parse(text.replace(",1e999", "")));
  expect(() => parseJson(text)).toThrow(/1e999 is out of range/);
  expect(parseJson("[-9007199254740993]")).toEqual([-9007199254740993n]);
});

test("digits and brackets inside strings mean nothing", () => {
  const text = '["9007199254740993","1e400","\\"[[\\\\",{"12345678901234567890":"x\\\\"}]';
  expect(parseJson(text)).toEqual(JSON.parse(text));
});

test("nesting over the limit is refused before it is parsed [X-D06]", () => {
  expect(() => parseJson("[".repeat(200_000) + "]".repeat(200_000))).toThrow(/nested deeper than 128 levels/);
  expect(parseJson(`"${"[".repeat(500)}"`)).toBe("[".repeat(500));
});

test("zero as a number and zero as text are not equal", () => {
  expect(jsonEqual(0, "0")).toBe(false);
  expect(jsonEqual({ a: 1, b: [2n ** 60n] }, { b: [2n ** 60n], a: 1 })).toBe(true);
});

test("canonical text reads as the value does, with all its digits", () => {
  const value = { __proto__x: [null, true, -0.5, { "é\n": '"' }, []], big: 2n ** 63n, empty: {} };
  expect(canonicalJson(value)).toBe(
    '{"__proto__x":[null,true,-0.5,{"é\\n":"\\""},[]],"big":9223372036854775808,"empty":{}}',
  );
});

test("in canonical text `__proto__` is a name like any other", () => {
  expect(canonicalJson(parseJson('{"b":{"__proto__":{"z":1,"a":2}},"a":0}'))).toBe(
    '{"a":0,"b":{"__proto__":{"a":2,"z":1}}}',
  );
});

test("canonical text does not depend on the order of keys", () => {
  expect(canonicalJson({ b: 1, a: { d: 2, c: 3 } })).toBe('{"a":{"c":3,"d":2},"b":1}');
});

test("a key named __proto__ stays an own key [X-D02]", () => {
  const value = parseJson('{"__proto__":{"admin":true}}');
  expect(Object.hasOwn(value as object, "__proto__")).toBe(true);
  expect(stringifyJson(value)).toBe('{"__proto__":{"admin":true}}');
});

test("a bigint anywhere is written with its digits, indented or not", () => {
  expect(stringifyJson({ a: [1, { id: 2n ** 63n }] }, 1)).toBe(
    '{\n "a": [\n  1,\n  {\n   "id": 9223372036854775808\n  }\n ]\n}',
  );
});

test("only own properties are read", () => {
  expect(ownValue({}, "constructor")).toBeUndefined();
  expect(ownValue({ a: null }, "a")).toBeNull();
});

test("a type word is the one JSON Schema uses", () => {
  const values = [null, true, 1, 1.5, 10n, "", [], {}];
  expect(values.map(jsonTypeName)).toEqual([
    "null",
    "boolean",
    "integer",
    "number",
    "integer",
    "string",
    "array",
    "object",
  ]);
});

test("a pointer keeps slashes and tildes of its steps", () => {
  expect(jsonPointer(["a/b", 0, "~"])).toBe("/a~1b/0/~0");
  expect(pointerSteps("/a~1b/0/~0")).toEqual(["a/b", "0", "~"]);
  expect([jsonPointer([]), pointerSteps("")]).toEqual(["", []]);
});

test("a megabyte of JSON is parsed without a stall", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => ({ id: i, key: `3e5-${i}`, ratio: i / 7, tags: ["a", 'b"c'] }));
  const text = JSON.stringify(rows);
  expect(cpuMs(() => parseJson(text))).toBeLessThan(1_000);
});
