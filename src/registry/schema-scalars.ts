import { readTypedScalars, type ScalarPlace, withMembers } from "../config/typed-scalars.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, isJsonObject, jsonPointer } from "../core/json.ts";
import { schemaHolding } from "./schema-keywords.ts";

/** Keywords whose value is text. */
const TEXT_KEYWORDS = new Set([
  "$anchor",
  "$comment",
  "$id",
  "$ref",
  "$schema",
  "description",
  "format",
  "pattern",
  "title",
]);

/** Keywords that hold a value of the kind the schema describes, and those that hold a list of such. */
const VALUE_KEYWORDS = new Set(["const", "default"]);
const VALUES_KEYWORDS = new Set(["enum", "examples"]);

/** Where a reader is in a schema. */
interface At {
  readonly source: ScalarPlace["source"];
  /** The outermost schema, where references are looked up. */
  readonly root: JsonObject;
  /** Leads to what is being read. */
  readonly steps: (string | number)[];
}

/**
 * Reads the scalars of a JSON Schema written in YAML by what the schema says of them: `default`, `enum`, `const` and
 * `examples` of a text stay as they were written (`007`, `1e3`), and so do names, patterns and descriptions. Gives the
 * schema itself where nothing of it is another.
 */
export function readSchemaScalars(
  schema: JsonObject,
  source: ScalarPlace["source"],
  pointerBase: readonly (string | number)[],
): JsonObject {
  return readSchema(schema, { source, root: schema, steps: [...pointerBase] });
}

function readSchema(schema: JsonObject, at: At): JsonObject {
  const typed = eachMember(schema, at, (value, keyword) => readKeyword(keyword, value, at));
  if (!Object.keys(typed).some((keyword) => VALUE_KEYWORDS.has(keyword) || VALUES_KEYWORDS.has(keyword))) return typed;
  // Values come second: their types have been read by then.
  return eachMember(typed, at, (value, keyword) => readValues(keyword, value, typed, at));
}

function readKeyword(keyword: string, value: JsonValue, at: At): JsonValue {
  if (TEXT_KEYWORDS.has(keyword)) return textOf(value, at);
  if (keyword === "type") return eachOf(value, at, typeWordOf);
  if (keyword === "required") return Array.isArray(value) ? eachOf(value, at, textOf) : value;
  switch (schemaHolding(keyword)) {
    case "none":
      return value;
    case "schemas":
      return eachOf(value, at, schemaOf);
    case "schemas-by-name":
      return isJsonObject(value) ? eachMember(value, at, (schema) => schemaOf(schema, at)) : value;
  }
}

/** Entries of `enum` are read by the type alone: they cannot say what they are themselves. */
function readValues(keyword: string, value: JsonValue, schema: JsonObject, at: At): JsonValue {
  const one = VALUE_KEYWORDS.has(keyword);
  if (!one && !(VALUES_KEYWORDS.has(keyword) && Array.isArray(value))) return value;
  const place = { source: at.source, pointer: jsonPointer(at.steps), root: at.root };
  if (one) return readTypedScalars(value, schema, place);
  return readTypedScalars(value, { items: keyword === "enum" ? { ...schema, enum: null } : schema }, place);
}

function schemaOf(schema: JsonValue, at: At): JsonValue {
  return isJsonObject(schema) ? readSchema(schema, at) : schema;
}

/** The object with its members read; itself where none is another. */
function eachMember(object: JsonObject, at: At, read: (value: JsonValue, name: string) => JsonValue): JsonObject {
  let changed: Map<string, JsonValue> | undefined;
  for (const name of Object.keys(object)) {
    const value = object[name];
    if (value === undefined) continue;
    at.steps.push(name);
    const made = read(value, name);
    at.steps.pop();
    if (made !== value) (changed ??= new Map<string, JsonValue>()).set(name, made);
  }
  return changed === undefined ? object : withMembers(object, changed);
}

/** The value, or each entry of a list. */
function eachOf(value: JsonValue, at: At, read: (one: JsonValue, at: At) => JsonValue): JsonValue {
  if (!isJsonArray(value)) return read(value, at);
  return value.map((one, i) => {
    at.steps.push(i);
    const made = read(one, at);
    at.steps.pop();
    return made;
  });
}

/** A text is its own source. */
function textOf(value: JsonValue, at: At): JsonValue {
  const asWritten = value === null || typeof value === "object" || typeof value === "string";
  return asWritten ? value : (at.source(jsonPointer(at.steps)) ?? value);
}

/** `type: null` without quotes means the type `null`. */
function typeWordOf(value: JsonValue, at: At): JsonValue {
  return value === null ? (at.source(jsonPointer(at.steps)) === "null" ? "null" : value) : textOf(value, at);
}
