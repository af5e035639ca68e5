import { Ajv } from "ajv";
import { expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { isJsonObject, type JsonObject } from "../../src/core/json.ts";
import { createGrammar, ORDER_STATUS } from "./declaration-fixture.ts";

const schema = createGrammar().schema;

function fits(text: string): boolean {
  return new Ajv({ strict: false }).compile(schema)(parseYaml(text));
}

test("the schema for editors takes E1 as written and refuses slips [S2-80]", () => {
  expect(fits(ORDER_STATUS)).toBe(true);
  expect(fits(`${ORDER_STATUS}timeout: { connect: 3s, read: 10s }\nx-any: 1\n`)).toBe(true);
  for (const slip of [
    ORDER_STATUS.replace("method: GET", "metod: GET"),
    ORDER_STATUS.replace("    type: string", "    type: strng"),
    ORDER_STATUS.replace("name: order_status", "name: order status"),
    ORDER_STATUS.replace("type: http\n", ""),
    `${ORDER_STATUS}retry: {max_retries: many}\n`,
    `${ORDER_STATUS}timeout: {connect: 3}\n`,
  ]) {
    expect(fits(slip)).toBe(false);
  }
});

test("it is a JSON Schema that editors understand, one branch a type", () => {
  expect(new Ajv({ strict: false }).validateSchema(schema)).toBe(true);
  expect(schema).toMatchObject({ $schema: "http://json-schema.org/draft-07/schema#", required: ["name", "type"] });
  expect(schema["oneOf"]).toMatchObject([
    { title: "Tool of type http", properties: { type: { const: "http" } }, additionalProperties: false },
    { title: "Tool of type script", properties: { type: { const: "script" } }, additionalProperties: false },
  ]);
});

test("every key in force is described, and those of later versions are not suggested", () => {
  const undescribed: string[] = [];
  const walk = (node: JsonObject, path: string): void => {
    const properties = node["properties"];
    for (const [name, member] of isJsonObject(properties ?? null) ? Object.entries(properties as JsonObject) : []) {
      if (!isJsonObject(member) || member["x-not-supported"] === true) continue;
      if (typeof member["description"] !== "string") undescribed.push(`${path}${name}`);
      walk(member, `${path}${name}.`);
      if (isJsonObject(member["items"] ?? null)) walk(member["items"] as JsonObject, `${path}${name}[].`);
    }
  };
  const kinds = schema["oneOf"] as readonly JsonObject[];
  for (const kind of kinds) walk(kind, "");
  expect(undescribed).toEqual([]);
  const [http] = kinds;
  expect(http).toMatchObject({
    properties: { cache: { not: {}, doNotSuggest: true }, mcp: { not: {}, doNotSuggest: true } },
  });
});
