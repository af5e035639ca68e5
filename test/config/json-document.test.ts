import { expect, test } from "vitest";
import { parseDocument } from "../../src/config/parse-document.ts";
import { stringifyJson } from "../../src/core/json.ts";
import { problemLines } from "./problem-lines.ts";

test("JSON text is read with the place of every value, without scalar sources", () => {
  const outcome = parseDocument('{\n\t"name": "t",\r\n  "list": [1, {"a": -1.5e2}, true, null]\n}\n', "json");
  if (!outcome.ok) throw new Error("refused");
  const { document } = outcome;
  expect(document.value).toEqual({ name: "t", list: [1, { a: -150 }, true, null] });
  expect(document.position("/name")).toEqual({ line: 2, column: 2 });
  expect(document.position("/list/1/a")).toEqual({ line: 3, column: 16 });
  expect(document.scalarSource("/list/0")).toBeUndefined();
});

test("integers beyond 2^53 keep their digits in JSON too [Y-D04]", () => {
  const text = '{"id":871234567890123457,"f":0.1,"big":1e300}';
  const outcome = parseDocument(text, "json");
  expect(outcome.ok && outcome.document.value["id"]).toBe(871234567890123457n);
  expect(outcome.ok && stringifyJson(outcome.document.value)).toBe('{"id":871234567890123457,"f":0.1,"big":1e+300}');
});

test("every escape of JSON is read, and `<<` is a key like any other", () => {
  const outcome = parseDocument('{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u8ba2\\ud83d\\ude00","<<":{"b":1}}', "json");
  expect(outcome.ok && outcome.document.value).toEqual({ a: '"\\/\b\f\n\r\t订😀', "<<": { b: 1 } });
});

test("a key written twice is refused with both lines in JSON too [Y-D01]", () => {
  expect(problemLines('{"method": "GET",\n "method": "DELETE"}', "json")).toEqual([
    "2:2 key `method` is written twice, on lines 1 and 2: keep one",
  ]);
});

test("a breach of the grammar is told with its place", () => {
  const cases: readonly (readonly [text: string, problem: RegExp])[] = [
    ["name: t", /^1:1 expected a JSON value, got `name`/],
    ["{name: 1}", /^1:2 expected a key in double quotes, got `name`/],
    ["{'a': 1}", /^1:2 expected a key in double quotes, got `'`/],
    ['{"a" 1}', /^1:6 expected `:` behind a key, got `1`/],
    ['{"a": 1 "b": 2}', /^1:9 expected `,` or `}`, got `"`/],
    ['{"a": 1,}', /^1:9 a comma stands before `}`/],
    ["[1,]", /^1:4 a comma stands before `]`/],
    ['{"a": [1, 2}', /^1:12 expected `,` or `]`, got `}`/],
    ['{"a": {"b": 1}', /^1:1 this `{` is not closed by `}`/],
    ['{"a": [1', /^1:7 this `\[` is not closed by `]`/],
    ['{"a": "b}', /^1:7 this text is not closed/],
    ['{"a": "x\ny"}', /^1:7 this text holds a line break/],
    ['{"a": "\\q"}', /^1:7 this text holds .* an unknown escape/],
    ['{"a": 01}', /^1:8 expected `,` or `}`, got `1`/],
    ['{"a": .5}', /^1:7 expected a JSON value, got `\.5`/],
    ['{"a": 1e999}', /^1:7 the number 1e999 is out of range/],
    ['{"a": truth}', /^1:7 expected a JSON value, got `truth`/],
    ['{"a": NaN}', /^1:7 expected a JSON value, got `NaN`/],
    ['{"a": 1} // end', /^1:10 `\/` follows the end of the JSON value/],
    ['{"a": "\\ud800"}', /^1:7 half of a surrogate pair/],
    ["", /^1:1 expected a JSON value, got the end of the text/],
    ["[]", /^1:1 expected a mapping of keys to values, got a list/],
    ['{"a":', /^1:6 expected a JSON value, got the end of the text/],
  ];
  for (const [text, problem] of cases) {
    const lines = problemLines(text, "json");
    expect(lines, text).toHaveLength(1);
    expect(lines[0], text).toMatch(problem);
  }
});

test("what is read is what JSON.parse reads", () => {
  const texts = [
    '{"a":[[],{}, "",0,-0,1.25,1E+2]}',
    '{"__proto__":{"x":1},"":null}',
    ' {"a" : {"b" : [ true , false ] } } ',
  ];
  for (const text of texts) {
    const outcome = parseDocument(text, "json");
    expect(outcome.ok && stringifyJson(outcome.document.value)).toBe(JSON.stringify(JSON.parse(text)));
  }
});
