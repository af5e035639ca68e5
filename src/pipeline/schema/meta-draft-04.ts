import type { JsonObject } from "../../core/json.ts";

const SCHEMA: JsonObject = { $ref: "#" };
const SCHEMA_OR_FLAG: JsonObject = { anyOf: [{ type: "boolean" }, SCHEMA] };
const SCHEMAS: JsonObject = { type: "array", minItems: 1, items: SCHEMA };
const SCHEMA_MAP: JsonObject = { type: "object", additionalProperties: SCHEMA };
const TEXT: JsonObject = { type: "string" };
const FLAG: JsonObject = { type: "boolean" };
const COUNT: JsonObject = { type: "integer", minimum: 0 };
const TEXTS: JsonObject = { type: "array", items: TEXT, uniqueItems: true };
const TYPE: JsonObject = { enum: ["array", "boolean", "integer", "null", "number", "object", "string"] };

/**
 * The meta-schema of draft-04 in the words of draft-07, with one thing let pass: `required: []`, which many write, and
 * which can only mean one thing. Source: http://json-schema.org/draft-04/schema.
 */
export const META_DRAFT_04: JsonObject = {
  type: "object",
  properties: {
    id: TEXT,
    title: TEXT,
    description: TEXT,
    multipleOf: { type: "number", exclusiveMinimum: 0 },
    maximum: { type: "number" },
    exclusiveMaximum: FLAG,
    minimum: { type: "number" },
    exclusiveMinimum: FLAG,
    maxLength: COUNT,
    minLength: COUNT,
    pattern: TEXT,
    additionalItems: SCHEMA_OR_FLAG,
    items: { anyOf: [SCHEMA, SCHEMAS] },
    maxItems: COUNT,
    minItems: COUNT,
    uniqueItems: FLAG,
    maxProperties: COUNT,
    minProperties: COUNT,
    required: TEXTS,
    additionalProperties: SCHEMA_OR_FLAG,
    definitions: SCHEMA_MAP,
    properties: SCHEMA_MAP,
    patternProperties: SCHEMA_MAP,
    dependencies: { type: "object", additionalProperties: { anyOf: [SCHEMA, TEXTS] } },
    enum: { type: "array", minItems: 1, uniqueItems: true },
    type: { anyOf: [TYPE, { type: "array", items: TYPE, minItems: 1, uniqueItems: true }] },
    allOf: SCHEMAS,
    anyOf: SCHEMAS,
    oneOf: SCHEMAS,
    not: SCHEMA,
  },
  dependencies: { exclusiveMaximum: ["maximum"], exclusiveMinimum: ["minimum"] },
};
