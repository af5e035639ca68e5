import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../src/core/json.ts";

/** Versions of JSON Schema that are put into the words of others. */
export type OlderDialect = "draft-04" | "draft-06" | "2019-09";

export const OLDER_NAMES: Readonly<Record<OlderDialect, string>> = {
  "draft-04": "http://json-schema.org/draft-04/schema#",
  "draft-06": "http://json-schema.org/draft-06/schema#",
  "2019-09": "https://json-schema.org/draft/2019-09/schema",
};

/** Keywords that a version does not know, though ajv counts some of them all the same. */
const UNKNOWN: Readonly<Record<OlderDialect, readonly string[]>> = {
  "draft-04": ["const", "contains", "minContains", "maxContains", "propertyNames", "if", "then", "else"],
  "draft-06": ["if", "then", "else", "minContains", "maxContains"],
  "2019-09": [],
};

/** Keywords whose value holds no schema. */
const PLAIN: ReadonlySet<string> = new Set(["enum", "const", "default", "uniqueItems", "required", "type"]);

/** A schema that the maker made, as it would be written in an older version. */
export function inOlderWords(schema: JsonObject, dialect: OlderDialect): JsonObject {
  const rewrite = { "draft-04": in04, "draft-06": (each: JsonObject) => each, "2019-09": in2019 }[dialect];
  return schemaIn(schema, rewrite, dialect === "draft-04") as JsonObject;
}

/** The same schema with what its version knows and nothing else. */
export function knownTo(schema: JsonObject, dialect: OlderDialect): JsonObject {
  const known = (each: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(each).filter(([keyword]) => !UNKNOWN[dialect].includes(keyword)));
  return schemaIn(schema, known, false) as JsonObject;
}

function schemaIn(schema: JsonValue, rewrite: (schema: JsonObject) => JsonObject, noFlags: boolean): JsonValue {
  if (typeof schema === "boolean" && noFlags) return schema ? {} : { not: {} };
  if (isJsonArray(schema)) return schema.map((each) => schemaIn(each, rewrite, noFlags));
  if (!isJsonObject(schema)) return schema;
  const entries = Object.entries(rewrite(schema)).map(([keyword, value]) => {
    if (PLAIN.has(keyword) || keyword.startsWith("exclusive")) return [keyword, value] as const;
    return [keyword, schemaIn(value, rewrite, noFlags)] as const;
  });
  return Object.fromEntries(entries);
}

function in04(schema: JsonObject): JsonObject {
  const { exclusiveMinimum, exclusiveMaximum, ...rest } = schema;
  return {
    ...rest,
    ...(exclusiveMinimum === undefined ? {} : { minimum: exclusiveMinimum, exclusiveMinimum: true }),
    ...(exclusiveMaximum === undefined ? {} : { maximum: exclusiveMaximum, exclusiveMaximum: true }),
  };
}

function in2019(schema: JsonObject): JsonObject {
  const { prefixItems, items, ...rest } = schema;
  const recursive = schema["$ref"] === "#/$defs/y" ? { $ref: undefined, $recursiveRef: "#" } : {};
  const copy = {
    ...rest,
    ...recursive,
    ...(prefixItems === undefined ? {} : { items: prefixItems }),
    ...(items === undefined ? {} : prefixItems === undefined ? { items } : { additionalItems: items }),
  };
  return JSON.parse(JSON.stringify(copy)) as JsonObject;
}
