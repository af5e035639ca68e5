import { expect, test } from "vitest";
import { parseJson } from "../../src/core/json.ts";
import { jsonSyntaxError } from "../../src/wire/json-syntax.ts";

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
  expect(jsonSyntaxError(text)).toBe(`is not valid JSON ${words}`);
});

test("nesting beyond the limit and a number out of range are told apart from bad syntax", () => {
  expect(jsonSyntaxError(`${"[".repeat(100_000)}${"]".repeat(100_000)}`)).toBe("is nested deeper than 128 levels");
  expect(jsonSyntaxError("[1e999]")).toBe("holds a number that is out of range");
});

test("a long text is walked in a moment", () => {
  const text = `{"a":"${"x".repeat(2_000_000)}","b":${" ".repeat(2_000_000)}?}`;
  const started = performance.now();
  expect(jsonSyntaxError(text)).toContain("at character 4000013");
  expect(performance.now() - started).toBeLessThan(1000);
});
