import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/core/json.ts";
import { isPlainSchema } from "../../../src/pipeline/schema/plain-schema.ts";
import { SchemaMaker } from "../schema-maker.ts";

// What is taken for a schema at first sight must be one by the meta-schemas, of which ajv is the judge here.

const OPTIONS = { strict: false, logger: false, validateFormats: false } as const;
const JUDGES = [new Ajv(OPTIONS), new Ajv2020(OPTIONS)];

/** Values of every type, some of them right for some keyword. */
const VALUES: readonly JsonValue[] = [
  null,
  true,
  0,
  1,
  -1,
  1.5,
  2,
  "",
  "string",
  "integer",
  "date",
  [],
  ["string"],
  ["string", "null"],
  ["string", "string"],
  ["a", "b"],
  ["a", "a"],
  ["a", 1],
  [true],
  [{}],
  [{ type: "text" }],
  {},
  { a: {} },
  { a: true },
  { a: 1 },
  { a: { type: "nothing" } },
  { type: "string" },
  { minLength: -1 },
];

const KEYWORDS = [
  "type title description default const enum examples format pattern contentEncoding contentMediaType minimum",
  "maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems minProperties maxProperties",
  "uniqueItems required properties additionalProperties items not allOf anyOf oneOf multipleOf $id $ref $anchor $defs",
  "$comment readOnly nullable dependencies x-other",
].flatMap((line) => line.split(" "));

function fitsAll(schema: JsonObject): boolean {
  return JUDGES.every((judge) => judge.validateSchema(schema) === true);
}

test("what a keyword may hold is taken at first sight only where both dialects allow it", () => {
  let taken = 0;
  for (const keyword of KEYWORDS) {
    for (const value of VALUES) {
      for (const schema of [{ [keyword]: value }, { properties: { x: { items: { [keyword]: value } } } }]) {
        if (!isPlainSchema(schema)) continue;
        taken++;
        expect(fitsAll(schema), JSON.stringify(schema)).toBe(true);
      }
    }
  }
  // The test would be worth nothing if all were left to the meta-schemas.
  expect(taken).toBeGreaterThan(150);
});

test("random schemas are taken at first sight only where both dialects allow them", () => {
  let taken = 0;
  for (let seed = 0; seed < 300; seed++) {
    const schema = new SchemaMaker(seed, seed % 2 === 0).schema(3);
    if (!isJsonObject(schema) || !isPlainSchema(schema)) continue;
    taken++;
    expect(fitsAll(schema), JSON.stringify(schema)).toBe(true);
  }
  expect(taken).toBeGreaterThan(5);
});

test("the short form of parameters is taken at first sight", () => {
  const schema: JsonObject = {
    type: "object",
    properties: {
      id: { type: "string", description: "An id", pattern: "^a" },
      at: { type: ["integer", "null"], minimum: 0 },
    },
    required: ["id"],
    additionalProperties: false,
  };
  expect(isPlainSchema(schema)).toBe(true);
});
