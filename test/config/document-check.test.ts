import { expect, test } from "vitest";
import { createDocumentCheck } from "../../src/config/document-check.ts";
import { orderProblems, parseDocument } from "../../src/config/parse-document.ts";
import { SharedParts } from "../../src/config/shared-parts.ts";
import { SIZE_SCHEMA } from "../../src/config/sizes.ts";
import { DURATION_SCHEMA } from "../../src/core/durations.ts";
import type { JsonObject } from "../../src/core/json.ts";

const SCHEMA: JsonObject = {
  type: "object",
  required: ["name", "type"],
  additionalProperties: false,
  patternProperties: { "^x-": {} },
  properties: {
    name: { type: "string", pattern: "^[a-z]{1,8}$", patternErrorMessage: "expected 1 to 8 small letters" },
    type: { enum: ["http"] },
    count: { type: "integer", minimum: 1, maximum: 10 },
    flag: { type: "boolean" },
    wait: DURATION_SCHEMA,
    size: SIZE_SCHEMA,
    list: { type: "array", minItems: 1, uniqueItems: true, items: { type: "string", minLength: 2, maxLength: 4 } },
    map: { type: "object", additionalProperties: { type: "string" } },
    nested: {
      type: "object",
      required: ["kind"],
      additionalProperties: false,
      properties: {
        kind: { enum: ["crimson", "green"] },
        later: { not: {}, "x-not-supported": true },
        fixed: { const: 1 },
      },
    },
    retry: { not: {}, "x-not-supported": true },
  },
};

function check(text: string, format: "yaml" | "json" = "yaml"): { value: JsonObject; lines: string[] } {
  const outcome = parseDocument(text, format);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  const { value, issues } = createDocumentCheck(SCHEMA)(outcome.document);
  return {
    value,
    lines: orderProblems(
      issues.map(({ pointer, message }) => ({ ...outcome.document.position(pointer), message })),
    ).map(({ line, column, message }) => `${line}:${column} ${message}`),
  };
}

const GOOD = "name: t\ntype: http\n";

test("a document that fits has no issues", () => {
  expect(
    check(
      `${GOOD}count: 3\nflag: true\nwait: 3s\nsize: 4MiB\nlist: [ab]\nmap: {a: b}\nnested: {kind: green}\nx-a: {b: 1}\n`,
    ).lines,
  ).toEqual([]);
});

test("an unknown key is named with the nearest known one, or with all that are in force", () => {
  expect(check(`${GOOD}cuont: 3\n`).lines).toEqual(['3:1 unknown key `cuont`; did you mean "count"?']);
  expect(check(`${GOOD}nested: {kind: green, colour_of_it: 1}\n`).lines).toEqual([
    "3:23 unknown key `colour_of_it` in `nested`; known here: `kind`, `fixed`",
  ]);
});

test("a key that is known and has no effect yet is refused as such", () => {
  expect(check(`${GOOD}retry: {max: 3}\nnested: {kind: green, later: 1}\n`).lines).toEqual([
    "3:1 `retry` is not supported yet: remove it",
    "4:23 `nested.later` is not supported yet: remove it",
  ]);
});

test("a key that is missing is named where it would stand, with what it may be", () => {
  expect(check("name: t\nnested: {}\n").lines).toEqual([
    '1:1 key `type` is missing; allowed: "http"',
    '2:1 key `kind` is missing in `nested`; allowed: "crimson", "green"',
  ]);
});

test("a value of another type is told with both types", () => {
  expect(check(`${GOOD}count: many\nflag: yes\nlist: ab\nmap: [1]\nnested: 3\n`).lines).toEqual([
    '3:1 `count`: expected a whole number, got text "many"',
    '4:1 `flag`: expected true or false, got text "yes": write true',
    '5:1 `list`: expected a list, got text "ab"',
    "6:1 `map`: expected a mapping, got a list",
    "7:1 `nested`: expected a mapping, got number 3",
  ]);
  expect(check(`${GOOD}map: {a: }\n`).lines).toEqual(["3:7 `map.a`: expected text, got nothing"]);
});

test("a value that is not allowed is told with those that are, and the nearest", () => {
  expect(check(`${GOOD}nested: {kind: gren, fixed: 2}\n`).lines).toEqual([
    '3:10 `nested.kind`: expected one of "crimson", "green"; got text "gren"; did you mean "green"?',
    "3:22 `nested.fixed`: expected 1; got number 2",
  ]);
});

test("limits are told with what was got", () => {
  expect(check("name: UPPER\ntype: http\ncount: 11\nlist: [a, abcde, ab, ab]\n").lines).toEqual([
    '1:1 `name`: expected 1 to 8 small letters; got text "UPPER"',
    "3:1 `count`: expected a number <= 10, got number 11",
    "4:1 `list`: entries 2 and 3 (counted from 0) are the same",
    "4:8 `list[0]`: expected at least 2 characters",
    "4:11 `list[1]`: expected at most 4 characters",
  ]);
});

test("a duration without its unit is refused with the mend [S2-59]", () => {
  expect(check(`${GOOD}wait: 3\nsize: 4MB5\n`).lines).toEqual([
    '3:1 `wait`: expected a duration with its unit, such as 500ms, 3s, 1m30s or 2h; got text "3": write 3s',
    '4:1 `size`: expected a size: bytes as an integer, or a number with B, KB, KiB, MB, MiB, GB or GiB, such as 4MiB; got text "4MB5"',
  ]);
});

test("scalars are read by the type the schema declares [Y-D03]", () => {
  const { value, lines } = check(
    "name: t\ntype: http\nmap: {a: 007, b: 1e3, c: true, d: 1.10, e: 0o755, f: 871234567890123457, g: text}\nsize: 0x10\ncount: 007\n",
  );
  expect(value["map"]).toEqual({
    a: "007",
    b: "1e3",
    c: "true",
    d: "1.10",
    e: "0o755",
    f: "871234567890123457",
    g: "text",
  });
  expect(value["size"]).toBe(16);
  expect(value["count"]).toBe(7);
  expect(lines).toEqual([]);
});

test("JSON says its types itself: a number where text is due is refused", () => {
  expect(check('{"name": "t", "type": "http", "map": {"a": 7}}', "json").lines).toEqual([
    "1:39 `map.a`: expected text, got number 7",
  ]);
});

test("integers beyond 2^53 are whole numbers and held against limits", () => {
  expect(check(`${GOOD}count: 871234567890123457\n`).lines).toEqual([
    "3:1 `count`: expected a number <= 10, got number 871234567890123457",
  ]);
});

test("parts that documents share are checked to the same outcome as each by itself, right or wrong", () => {
  const checkDocument = createDocumentCheck(SCHEMA);
  const parts = new SharedParts();
  const bodies = [
    "list: [aa, bb]\n",
    "list: [a, bb]\n",
    "list: [07, 1e1]\n",
    "map: {a: 1.10, b: text}\n",
    "map: {a: [1]}\n",
    "nested: {kind: red, extra: 1}\n",
    "nested: {kind: green, fixed: 12345678901234567890}\n",
  ];
  for (const body of [...bodies, ...bodies, ...bodies]) {
    const text = `name: it\ntype: http\n${body}`;
    const outcome = parseDocument(text, "yaml", { parts });
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
    const { value, issues } = checkDocument(outcome.document);
    const alone = parseDocument(text, "yaml");
    if (!alone.ok) throw new Error(JSON.stringify(alone.problems));
    expect({ value, issues }, text).toStrictEqual(createDocumentCheck(SCHEMA)(alone.document));
  }
});
