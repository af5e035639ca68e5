import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../core/json.ts";

/** What a keyword's value must be, in both dialects. */
type Fits = (value: JsonValue) => boolean;

const TYPES: ReadonlySet<JsonValue> = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);

const isScalar: Fits = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);
const isText: Fits = (value) => typeof value === "string";
const isFlag: Fits = (value) => typeof value === "boolean";
const isNumber: Fits = (value) => typeof value === "number";
const isCount: Fits = (value) => typeof value === "number" && Number.isInteger(value) && value >= 0;
const isTexts: Fits = (value) => isJsonArray(value) && value.every(isText) && isDistinct(value);
const isChoice: Fits = (value) => isJsonArray(value) && value.length > 0 && value.every(isScalar) && isDistinct(value);
const isSchema: Fits = (value) => typeof value === "boolean" || (isJsonObject(value) && isPlainSchema(value));
const isSchemas: Fits = (value) => isJsonArray(value) && value.length > 0 && value.every(isSchema);
const isSchemaMap: Fits = (value) => isJsonObject(value) && Object.values(value).every(isSchema);
const isType: Fits = (value) =>
  isJsonArray(value)
    ? value.length > 0 && value.every((type) => TYPES.has(type)) && isDistinct(value)
    : TYPES.has(value);

const KEYWORDS: ReadonlyMap<string, Fits> = new Map<string, Fits>([
  ["type", isType],
  ["title", isText],
  ["description", isText],
  ["default", () => true],
  ["const", () => true],
  ["enum", isChoice],
  ["examples", isJsonArray],
  ["format", isText],
  ["pattern", isText],
  ["contentEncoding", isText],
  ["contentMediaType", isText],
  ["minimum", isNumber],
  ["maximum", isNumber],
  ["exclusiveMinimum", isNumber],
  ["exclusiveMaximum", isNumber],
  ["minLength", isCount],
  ["maxLength", isCount],
  ["minItems", isCount],
  ["maxItems", isCount],
  ["minProperties", isCount],
  ["maxProperties", isCount],
  ["uniqueItems", isFlag],
  ["required", isTexts],
  ["properties", isSchemaMap],
  ["additionalProperties", isSchema],
  ["items", isSchema],
  ["not", isSchema],
  ["allOf", isSchemas],
  ["anyOf", isSchemas],
  ["oneOf", isSchemas],
]);

/**
 * Whether a schema is surely one by the meta-schemas of draft-07 and 2020-12, which are some twenty times slower to
 * say so. False where it uses any other keyword, and for what is wrong: ask them then. A schema nests 64 levels at most.
 */
export function isPlainSchema(schema: JsonObject): boolean {
  for (const keyword of Object.keys(schema)) {
    const fits = KEYWORDS.get(keyword);
    const value = schema[keyword];
    if (fits === undefined || value === undefined || !fits(value)) return false;
  }
  return true;
}

function isDistinct(values: readonly JsonValue[]): boolean {
  return values.length < 2 || new Set(values).size === values.length;
}
