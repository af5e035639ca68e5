import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";

/** Parameters the tool declares: name → schema. */
export function declaredParams(inputSchema: JsonObject): JsonObject {
  const properties = ownValue(inputSchema, "properties");
  return isJsonObject(properties) ? properties : {};
}

/** Whether a call always has a value for the parameter: it is required or has a default. */
export function isAlwaysGiven(inputSchema: JsonObject, name: string): boolean {
  const required = ownValue(inputSchema, "required");
  if (isJsonArray(required) && required.includes(name)) return true;
  const schema = ownValue(declaredParams(inputSchema), name);
  return isJsonObject(schema) && (ownValue(schema, "default") ?? null) !== null;
}

/** Whether null is a value of the parameter, as against "not given". */
export function allowsNull(schema: JsonValue): boolean {
  if (!isJsonObject(schema)) return schema === true;
  const type = ownValue(schema, "type");
  if (type !== undefined) return type === "null" || (isJsonArray(type) && type.includes("null"));
  if (Object.hasOwn(schema, "const")) return schema["const"] === null;
  const values = ownValue(schema, "enum");
  if (isJsonArray(values)) return values.includes(null);
  const branches = ownValue(schema, "anyOf") ?? ownValue(schema, "oneOf");
  if (isJsonArray(branches)) return branches.some(allowsNull);
  return !Object.hasOwn(schema, "$ref") && !Object.hasOwn(schema, "allOf");
}

/** The JSON types the schema names besides null; `undefined` where it names none. */
export function namedTypes(schema: JsonValue): readonly string[] | undefined {
  const type = isJsonObject(schema) ? ownValue(schema, "type") : undefined;
  if (type === undefined) return undefined;
  return [type].flat().filter((name): name is string => typeof name === "string" && name !== "null");
}
