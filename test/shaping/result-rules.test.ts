import { expect, test } from "vitest";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/core/json.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { parseResultRules, RESULT_SCHEMA } from "../../src/shaping/result-rules.ts";

function issues(block: JsonObject, delivery: "conclusive" | "incremental" = "conclusive"): string[] {
  return parseResultRules(block, { delivery }).issues.map(({ pointer, message }) => `${pointer}: ${message}`);
}

test("without a block everything has its default, which depends on the delivery", () => {
  const { rules, issues: found, explain } = parseResultRules(undefined, { delivery: "conclusive" });
  expect(rules).toEqual({
    format: "auto",
    successField: undefined,
    successValue: null,
    dataField: undefined,
    maxLength: 700_000,
    truncation: "head",
  });
  expect(found).toEqual([]);
  expect(explain()).toEqual([
    { key: "result.format", value: "auto", declared: false },
    { key: "result.success_field", value: "none: the upstream's status decides", declared: false },
    { key: "result.data_field", value: "none: the whole answer", declared: false },
    { key: "result.max_length", value: "700000", declared: false },
    { key: "result.truncation", value: "head", declared: false },
  ]);
  expect(parseResultRules(undefined, { delivery: "incremental" }).rules.maxLength).toBe(Number.POSITIVE_INFINITY);
  expect(parseResultRules(undefined, { delivery: "incremental", defaults: { maxLength: 10 } }).rules.maxLength).toBe(
    10,
  );
});

test("a declared block is taken as it is written", () => {
  const block = { success_field: "code", success_value: 0, data_field: "data", max_length: 1200, truncation: "tail" };
  const {
    rules,
    issues: found,
    explain,
  } = parseResultRules(block, { delivery: "conclusive", defaults: { maxLength: 5 } });
  expect(found).toEqual([]);
  expect(rules).toEqual({
    format: "auto",
    successField: "code",
    successValue: 0,
    dataField: "data",
    maxLength: 1200,
    truncation: "tail",
  });
  expect(explain()).toContainEqual({ key: "result.success_value", value: "0", declared: true });
  expect(explain()).toContainEqual({ key: "result.max_length", value: "1200", declared: true });
});

test("what does not fit together is named with its mend", () => {
  expect(issues({ success_field: "code" })).toEqual([
    "/success_field: `success_field` needs `success_value`, the value that means success, such as 0 or true",
  ]);
  expect(issues({ success_value: 0 })).toEqual([
    "/success_value: `success_value` has no effect without `success_field`",
  ]);
  expect(issues({ success_field: "error", success_value: null })).toEqual([]);
  expect(issues({ data_field: "data..x" })).toEqual([
    "/data_field: `data_field` is no path: write names joined by dots and list indexes, such as data.items[0].id",
  ]);
  expect(issues({ format: "text", data_field: "data" })).toEqual([
    "/data_field: `data_field` looks into JSON: remove it, or `format: text`",
  ]);
  expect(issues({ truncation: "summary" })).toEqual([]);
  expect(issues({ truncation: "summary" }, "incremental")).toEqual([
    "/truncation: `truncation: summary` needs the whole result, which `delivery: incremental` gives away in pieces: use head or error",
  ]);
  expect(issues({ truncation: "tail" }, "incremental")).toEqual([
    "/truncation: `truncation: tail` needs the whole result, which `delivery: incremental` gives away in pieces: use head or error",
  ]);
  expect(issues({ max_length: 1_000_001 })).toEqual([
    "/max_length: `max_length` of a conclusive tool is at most 1000000, got 1000001",
  ]);
  expect(issues({ max_length: 1_000_001 }, "incremental")).toEqual([]);
  expect(issues({ loose: true })).toEqual(["/loose: `loose` has no effect without `success_field`"]);
  expect(issues({ template: "{id" })).toEqual([
    "/template: `template` has a brace that holds no path: write {id} or {items[0].id} for a field, and {{ or }} for a brace",
  ]);
  expect(issues({ error_field: "a..b" })).toEqual([expect.stringContaining("/error_field: `error_field` is no path")]);
  expect(issues({ format: "text", fields: { keep: ["a"] } })).toEqual([
    "/fields: `fields` looks into JSON: remove it, or `format: text`",
  ]);
});

test("the schema takes what is supported, marks what is not yet, and refuses the rest", () => {
  const checker = createSchemaChecker({ maxCompiled: 1 });
  expect(checker.problem(RESULT_SCHEMA)).toBeUndefined();
  const fits = (block: JsonObject): boolean => checker.check(RESULT_SCHEMA, block).ok;
  const whole = {
    format: "json",
    success_field: "code",
    success_value: false,
    data_field: "data.items[0]",
    max_length: 1,
    truncation: "head_tail",
  };
  expect(fits(whole)).toBe(true);
  const wrong: JsonObject[] = [
    { max_length: 0 },
    { max_length: "5" },
    { truncation: "middle" },
    { success_value: {} },
    { x: 1 },
    { select: "" },
  ];
  for (const block of wrong) expect(fits(block)).toBe(false);
  const properties = Object.entries(RESULT_SCHEMA["properties"] as JsonObject);
  const marked = properties.filter(([, schema]) => isJsonObject(schema) && schema["x-not-supported"] === true);
  expect(marked.map(([key]) => key)).toEqual(["omit"]);
  const described = (schema: JsonValue): boolean => isJsonObject(schema) && typeof schema["description"] === "string";
  expect(properties.every(([, schema]) => described(schema))).toBe(true);
});
