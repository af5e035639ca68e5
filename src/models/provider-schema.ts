import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import { FlatReader, type FlatShape } from "./flat-shape.ts";

/**
 * Keywords that a provider refuses at the top of a schema of arguments, or heeds nowhere. Source: the API of OpenAI answers
 * 400 "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
 */
const NOT_AT_TOP: ReadonlySet<string> = new Set([
  "$ref",
  "$dynamicRef",
  "$recursiveRef",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "enum",
  "const",
  "dependentSchemas",
  "dependentRequired",
  "dependencies",
  "unevaluatedProperties",
]);

/**
 * A schema of arguments in a form that every model provider takes: at its top an object with properties and no
 * combination of schemas. What the combinations said of properties stands beside each other, what each alternative
 * requires is required, and what goes together is said in words at the end of the description.
 *
 * It is for showing alone. It may allow what the schema refuses, and for a property that only some alternatives have it
 * says what those say of it. A schema that is in this form already is given back as it is.
 */
export function providerSchema(schema: JsonObject): JsonObject {
  const keys = Object.keys(schema);
  const plain = ownValue(schema, "type") === "object" && isJsonObject(ownValue(schema, "properties"));
  if (plain && !keys.some((key) => NOT_AT_TOP.has(key))) return schema;
  const flat = new FlatReader(schema).read(schema);
  const kept = Object.entries(schema).filter(([key]) => !NOT_AT_TOP.has(key));
  const description = [ownValue(schema, "description"), ...flat.notes].filter((text) => typeof text === "string");
  const form = new Map<string, JsonValue>(kept);
  form.set("type", "object");
  form.set("properties", Object.fromEntries([...flat.properties].map(([name, value]) => [name, standing(value)])));
  if (flat.required.size > 0) form.set("required", [...flat.required]);
  else form.delete("required");
  if (description.length > 0) form.set("description", description.join("\n"));
  if (closes(schema, flat)) form.set("additionalProperties", false);
  return Object.fromEntries(form);
}

/** Whether nothing but the properties found may be given, by a keyword that also heeds those of other schemas. */
function closes(schema: JsonObject, { open }: FlatShape): boolean {
  return ownValue(schema, "unevaluatedProperties") === false && !open;
}

/** A schema without references to places that this form does not have. */
function standing(value: JsonValue): JsonValue {
  if (isJsonArray(value)) return value.map(standing);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).filter(([key, inner]) => !(key === "$ref" && leadsAway(inner)));
  return Object.fromEntries(entries.map(([key, inner]) => [key, standing(inner)]));
}

function leadsAway(reference: JsonValue): boolean {
  if (typeof reference !== "string") return false;
  const [, first] = /^#\/([^/]*)/.exec(reference) ?? [];
  return first !== undefined && NOT_AT_TOP.has(first);
}
