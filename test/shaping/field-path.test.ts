import { expect, test } from "vitest";
import { type JsonValue, parseJson } from "../../src/core/json.ts";
import { followPath, parseFieldPath } from "../../src/shaping/field-path.ts";

function follow(value: JsonValue, text: string): unknown {
  const path = parseFieldPath(text);
  if (path === undefined) return "no path";
  const got = followPath(value, path);
  return got.found ? got.value : `nothing past "${got.at}"`;
}

test("names lead through objects and indexes through lists", () => {
  const value = { data: { items: [{ id: 1 }, { id: 2 }], "0": "zero", 订单: "x" } };
  expect(follow(value, "data.items[1].id")).toBe(2);
  expect(follow(value, "data.items.1.id")).toBe(2);
  expect(follow(value, "data.0")).toBe("zero");
  expect(follow(value, "data.订单")).toBe("x");
  expect(follow([[5]], "0[0]")).toBe(5);
});

test("only own properties and elements count [X-D03]", () => {
  const value = parseJson('{"data":[{"id":1}],"text":"abc","__proto__":{"x":7}}');
  expect(follow(value, "constructor.name")).toBe('nothing past ""');
  expect(follow({}, "__proto__.x")).toBe('nothing past ""');
  expect(follow(value, "__proto__.x")).toBe(7);
  expect(follow(value, "data.length")).toBe('nothing past "data"');
  expect(follow(value, "data.0.id")).toBe(1);
  expect(follow(value, "data[1]")).toBe('nothing past "data"');
  expect(follow(value, "data[0][0]")).toBe('nothing past "data[0]"');
  expect(follow(value, "data.-1")).toBe('nothing past "data"');
  expect(follow(value, "text.0")).toBe('nothing past "text"');
  expect(follow(value, "text.length")).toBe('nothing past "text"');
});

test("what is no path is told", () => {
  for (const text of ["", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "[0]", "a[0]b", "a]"]) {
    expect(parseFieldPath(text)).toBeUndefined();
  }
});
