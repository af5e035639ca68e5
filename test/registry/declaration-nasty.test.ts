import { expect, test } from "vitest";
import { cpuMs } from "../config/cpu-time.ts";
import { ORDER_STATUS, parse } from "./declaration-fixture.ts";

/** Values that stand where they should not. */
const VALUES = [
  "",
  "~",
  "[]",
  "{}",
  "7",
  "-1",
  "1e999",
  "true",
  "''",
  '"\\u0000"',
  "[[[[]]]]",
  "{a: {b: {c: d}}}",
  "*x",
  "&x y",
  "!t z",
  "'{x}'",
  "{x}",
  "{x: }",
  "[1, {2: 3}]",
  "871234567890123457",
  "'__proto__'",
  "{__proto__: {a: 1}}",
  "😀",
  "| \n  x",
  "{name: a, type: string}",
  "[{name: __proto__, type: object, default: {__proto__: 1}}]",
];

const KEYS = [
  "name",
  "title",
  "description",
  "type",
  "enabled",
  "labels",
  "hints",
  "delivery",
  "params",
  "input_schema",
  "output_schema",
  "result",
  "timeout",
  "endpoint",
  "method",
  "query",
  "headers",
  "body",
  "request_body",
  "auth",
  "retry",
  "mcp",
  "__proto__",
  "constructor",
  "x-a",
  "<<",
];

test("any value under any key gives an outcome and never an exception", () => {
  for (const key of KEYS) {
    for (const value of VALUES) {
      const without = ORDER_STATUS.replace(new RegExp(`^${key}:.*\\n(?:[ -].*\\n)*`, "m"), "");
      const outcome = parse(`${without}${key}: ${value}\n`);
      if (outcome.ok) continue;
      expect(outcome.problems.length, `${key}: ${value}`).toBeGreaterThan(0);
      for (const { line, column, message } of outcome.problems) {
        expect(line).toBeGreaterThan(0);
        expect(column).toBeGreaterThan(0);
        expect(message).toMatch(/^[^\p{Cc}]{5,1000}$/u);
      }
    }
  }
});

test("any cut of a file gives an outcome and never an exception [Y-D11]", () => {
  for (let end = 0; end <= ORDER_STATUS.length; end += 3) {
    const outcome = parse(ORDER_STATUS.slice(0, end));
    if (!outcome.ok) expect(outcome.problems.length).toBeGreaterThan(0);
  }
});

test("large and odd schemas are answered within bounded time", () => {
  const head = "name: t\ntype: http\nendpoint: http://127.0.0.1/x\nmethod: POST\n";
  const texts = [
    `${head}params:\n${Array.from({ length: 2_000 }, (_, i) => `  - {name: p${i}, type: string}\n`).join("")}`,
    `${head}input_schema: {type: object, properties: {a: {$ref: '#/$defs/a'}}, $defs: {a: {$ref: '#/$defs/a'}}}\n`,
    `${head}input_schema: {type: object, properties: {a: ${"{anyOf: [".repeat(40)}{type: string}${"]}".repeat(40)}}}\n`,
    `${head}input_schema: {type: object, properties: {a: {type: string, pattern: '^(a+)+$', default: ${"a".repeat(5_000)}}}}\n`,
    `${head}input_schema: {type: object, properties: {a: {enum: [${Array.from({ length: 5_000 }, (_, i) => i).join(", ")}]}}}\n`,
    `${head}${Array.from({ length: 3_000 }, (_, i) => `k${i}: 1\n`).join("")}`,
    `${head}labels: {${Array.from({ length: 3_000 }, (_, i) => `k${i}: 1`).join(", ")}}\n`,
  ];
  for (const text of texts) {
    expect(
      cpuMs(() => parse(text)),
      text.slice(60, 120),
    ).toBeLessThan(3_000);
  }
});

test("declarations are read in a moment", () => {
  const spent = cpuMs(() => {
    for (let i = 0; i < 250; i++) parse(`${ORDER_STATUS}# ${i}\n`);
  });
  expect(spent).toBeLessThan(2_000);
});

test("a problem that quotes a name is one line without control characters", () => {
  const text = `name: t\ndescription: Find one order by its number\ntype: http\nendpoint: http://127.0.0.1/x\nheaders: {"a\\nb\\u0007": c}\n`;
  const outcome = parse(text);
  expect(outcome.ok ? [] : outcome.problems.map(({ message }) => message)).toEqual([
    "`a\\u000ab\\u0007` is no header name: letters, digits and !#$%&'*+-.^_`|~ are allowed",
  ]);
});
