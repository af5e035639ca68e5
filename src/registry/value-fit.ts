import { ownList, ownObject } from "../config/own-values.ts";
import { expectedWords, misfitWords } from "../config/schema-errors.ts";
import { typeNames } from "../config/typed-scalars.ts";
import { keyText } from "../config/wording.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject, jsonEqual, jsonTypeName, ownValue } from "../core/json.ts";

/**
 * Why a value that a schema itself holds (`default`, an example) does not fit that schema, in a few words; `undefined`
 * where it fits as far as can be told without references and patterns.
 */
export function misfit(value: JsonValue, schema: JsonObject): string | undefined {
  return (
    typeMisfit(value, schema) ?? choiceMisfit(value, schema) ?? sizeMisfit(value, schema) ?? partMisfit(value, schema)
  );
}

/** Why a value is of none of the types a schema names. */
export function typeMisfit(value: JsonValue, schema: JsonObject): string | undefined {
  const types = ownValue(schema, "type") === undefined ? [] : typeNames(schema);
  const name = jsonTypeName(value);
  const fits = types.length === 0 || types.includes(name) || (name === "integer" && types.includes("number"));
  return fits ? undefined : misfitWords(types, value);
}

function choiceMisfit(value: JsonValue, schema: JsonObject): string | undefined {
  const constant = ownValue(schema, "const");
  const allowed = constant === undefined ? ownList(schema, "enum") : [constant];
  const fits = allowed === undefined || allowed.some((each) => jsonEqual(each, value));
  return fits ? undefined : expectedWords(allowed, value);
}

/** Lower limit, upper limit, how much a value has of what they limit, and the word for it. */
const LIMITS: readonly (readonly [
  min: string,
  max: string,
  measure: (value: JsonValue) => number | bigint | undefined,
  word: string,
])[] = [
  ["minimum", "maximum", (value) => (typeof value === "number" || typeof value === "bigint" ? value : undefined), ""],
  ["minLength", "maxLength", (value) => (typeof value === "string" ? [...value].length : undefined), " characters"],
  ["minItems", "maxItems", (value) => (Array.isArray(value) ? value.length : undefined), " entries"],
];

function sizeMisfit(value: JsonValue, schema: JsonObject): string | undefined {
  for (const [min, max, measure, word] of LIMITS) {
    const size = measure(value);
    if (size === undefined) continue;
    const least = limit(schema, min);
    const most = limit(schema, max);
    if (least !== undefined && size < least) return `expected at least ${least}${word}, got ${size}`;
    if (most !== undefined && size > most) return `expected at most ${most}${word}, got ${size}`;
  }
  return undefined;
}

function limit(schema: JsonObject, keyword: string): number | bigint | undefined {
  const value = ownValue(schema, keyword);
  return typeof value === "number" || typeof value === "bigint" ? value : undefined;
}

function partMisfit(value: JsonValue, schema: JsonObject): string | undefined {
  if (Array.isArray(value)) {
    const items = ownObject(schema, "items");
    if (items === undefined) return undefined;
    return firstMisfit(value.map((item: JsonValue, i) => [`entry ${i + 1}`, item, items]));
  }
  if (!isJsonObject(value)) return undefined;
  const required = (ownList(schema, "required") ?? []).filter((name) => typeof name === "string");
  const missing = required.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `key ${keyText(missing)} is missing`;
  const properties = ownObject(schema, "properties") ?? {};
  return firstMisfit(
    Object.entries(value).flatMap(([name, member]): [string, JsonValue, JsonObject][] => {
      const own = ownObject(properties, name);
      return own === undefined ? [] : [[`key ${keyText(name)}`, member, own]];
    }),
  );
}

function firstMisfit(
  parts: readonly (readonly [where: string, value: JsonValue, schema: JsonObject])[],
): string | undefined {
  for (const [where, value, schema] of parts) {
    const why = misfit(value, schema);
    if (why !== undefined) return `${where}: ${why}`;
  }
  return undefined;
}
