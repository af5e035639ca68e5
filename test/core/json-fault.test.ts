import { expect, test } from "vitest";
import { hasDuplicateNames, parseJson } from "../../src/core/json.ts";
import { jsonFault } from "../../src/core/json-fault.ts";
import { cpuMs } from "../config/cpu-time.ts";

test.each([
  ["", "at character 1: expected a JSON value, got the end of the text"],
  ['{"a":1', "at character 7: expected `,` or `}`, got the end of the text"],
  ['{"a":1 "b":2}', 'at character 8: expected `,` or `}`, got "\\"b\\":2}"'],
  ["{'a':1}", `at character 2: expected a name in double quotes, got "'a':1}"`],
  ['{"a" 1}', 'at character 6: expected `:`, got "1}"'],
  ['{"a":1,}', 'at character 8: expected a name in double quotes, got "}"'],
  ["[1,2", "at character 5: expected `,` or `]`, got the end of the text"],
  ["[1,]", 'at character 4: expected a JSON value, got "]"'],
  ['{"a":nul}', 'at character 6: expected a JSON value, got "nul}"'],
  ['{"a":01}', 'at character 6: expected a JSON value, got "01}"'],
  ['{"a":True}', 'at character 6: expected a JSON value, got "True}"'],
  ['{"a":"x', "at character 8: expected the closing quote of a string, got the end of the text"],
  ['{"a":"x\ny"}', 'at character 8: expected an escape such as \\n or \\t for a control character, got "\\ny\\"}"'],
  ['{"a":"\\q"}', 'at character 7: expected an escape such as \\n, \\" or \\u00e9, got "\\\\q\\"}"'],
  ['{"a":1} x', 'at character 9: expected nothing more, got "x"'],
])("%j is not valid JSON, and it says where and why", (text, words) => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
  expect(jsonFault(text)?.description).toBe(`is not valid JSON ${words}`);
});

test("nesting beyond the limit and a number out of range are told apart from bad syntax, with their places", () => {
  expect(jsonFault(`${"[".repeat(100_000)}${"]".repeat(100_000)}`)).toMatchObject({
    reason: "TOO_DEEP",
    description: "is nested deeper than 128 levels",
  });
  expect(jsonFault('{"a":[1,{"b/c":-1e999}]}')).toEqual({
    reason: "OUT_OF_RANGE",
    pointer: "/a/1/b~1c",
    description: "holds the number -1e999 at /a/1/b~1c, which is out of range: at most 1.79e308",
  });
  expect(jsonFault("1e999")).toMatchObject({ pointer: "", description: expect.stringContaining("1e999, which") });
  expect(jsonFault('{"n":[1,01]}')).toMatchObject({ reason: "NOT_JSON", pointer: "/n/1" });
});

test.each([
  ['{"a":1,"a":2}', "/a", 'has the name "a" twice in one object, again at character 8: keep one of them'],
  ['{"x":[{"k":1},{"k":1,"\\u006b":2}]}', "/x/1/k", 'has the name "k" twice in one object, again at character 22'],
  ['{"__proto__":1,"__proto__":2}', "/__proto__", 'has the name "__proto__" twice'],
])("%j has a name twice, which is found by its place", (text, pointer, words) => {
  expect(hasDuplicateNames(text, parseJson(text))).toBe(true);
  const fault = jsonFault(text);
  expect(fault).toMatchObject({ reason: "DUPLICATE_NAME", pointer });
  expect(fault?.description).toContain(words);
});

test.each(['{"a":{"a":1},"b":[{"a":1},{"a":2}]}', '{"a:b":"\\":c","d":[]}', "[]", '"a:b"', '{"__proto__":{"a":1}}'])(
  "%j has no name twice",
  (text) => {
    expect(hasDuplicateNames(text, parseJson(text))).toBe(false);
    expect(jsonFault(text)).toBeUndefined();
  },
);

test("a long text is walked in a moment", () => {
  const text = `{"a":"${"x".repeat(2_000_000)}","b":${" ".repeat(2_000_000)}?}`;
  const spent = cpuMs(() => expect(jsonFault(text)?.description).toContain("at character 4000013"));
  expect(spent).toBeLessThan(2_000);
});

test("a hundred thousand names, and as many objects, are looked at in a moment", () => {
  const names = Array.from({ length: 100_000 }, (_, i) => `"n${i}":{"a":${i}}`).join(",");
  const text = `{${names},"n7":1}`;
  const tookMs = cpuMs(() => {
    expect(hasDuplicateNames(text, parseJson(text))).toBe(true);
    expect(jsonFault(text)?.pointer).toBe("/n7");
  });
  expect(tookMs).toBeLessThan(10_000);
});
