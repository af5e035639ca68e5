import { expect, test } from "vitest";
import { parseDocument } from "../../src/config/parse-document.ts";
import { readTypedScalars } from "../../src/config/typed-scalars.ts";
import type { JsonValue } from "../../src/core/json.ts";

function read(text: string, schema: JsonValue): JsonValue {
  const outcome = parseDocument(`v: ${text}\n`, "yaml");
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  const { document } = outcome;
  return readTypedScalars(document.value["v"] ?? null, schema, { source: document.scalarSource, pointer: "/v" });
}

test("text stays as it was written where the schema takes text alone", () => {
  for (const text of [
    "007",
    "1e3",
    "0o755",
    "0x1F",
    "1.10",
    "true",
    "False",
    "-0",
    "+5",
    "871234567890123457",
    "1e999",
  ]) {
    expect(read(text, { type: "string" })).toBe(text);
  }
});

test("a value that fits another type the schema takes keeps it", () => {
  expect(read("007", { type: ["string", "integer"] })).toBe(7);
  expect(read("1", { type: ["string", "number"] })).toBe(1);
  expect(read("1.5", { type: ["string", "integer"] })).toBe("1.5");
  expect(read("true", { type: ["string", "boolean"] })).toBe(true);
  expect(read("1e3", {})).toBe(1_000);
  expect(read("1e3", { type: "number" })).toBe(1_000);
});

test("nothing is no text", () => {
  expect(read("", { type: "string" })).toBeNull();
  expect(read("~", { type: "string" })).toBeNull();
});

test("entries are read by the schemas of entries, through references and alternatives too", () => {
  expect(
    read("[1, {k: 2, l: 3}]", { items: { type: ["string", "object"], properties: { k: { type: "string" } } } }),
  ).toEqual(["1", { k: "2", l: 3 }]);
  expect(read("{a: 1, b: 2}", { properties: { a: {} }, additionalProperties: { type: "string" } })).toEqual({
    a: 1,
    b: "2",
  });
  expect(read("007", { $ref: "#/$defs/id", $defs: { id: { anyOf: [{ type: "string" }, { type: "null" }] } } })).toBe(
    "007",
  );
  expect(read("007", { oneOf: [{ type: "string" }, { type: "integer" }] })).toBe(7);
  expect(read("7", { enum: ["7", "8"] })).toBe("7");
  expect(read("7", { enum: ["7", 8] })).toBe(7);
});

test("a reference to itself or to nowhere ends", () => {
  expect(read("7", { $ref: "#" })).toBe(7);
  expect(read("7", { $ref: "#/nowhere" })).toBe(7);
  expect(read("7", { $ref: "https://example.com/schema" })).toBe(7);
});
