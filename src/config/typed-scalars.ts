import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, isJsonObject, jsonPointer, jsonTypeName, ownValue, pointerSteps } from "../core/json.ts";
import type { SharedResults } from "../core/shared-values.ts";
import { ownList, ownObject, ownText } from "./own-values.ts";

/** What was found out about schemas; of use for as long as they are the same objects. */
export type KnownSchemas = Map<JsonValue, Expectation>;

/** Where a value comes from. */
export interface ScalarPlace {
  /** Source text of the scalar at a pointer, as in SourceDocument. */
  readonly source: (pointer: string) => string | undefined;
  /** Pointer of the value. Default: the whole document. */
  readonly pointer?: string;
  /** The schema that `$ref` of the value's schema is looked up in. Default: the value's schema. */
  readonly root?: JsonValue;
  /** What is known of the schema already. */
  readonly known?: KnownSchemas;
  /** Members of the value that were read before, by the same schema. Default: all are read. */
  readonly shared?: SharedResults<JsonValue>;
}

/** A schema that says nothing. */
const ANY_VALUE: JsonObject = {};

/**
 * Reads scalars by their declared type: where the schema takes text and the YAML text reads as a number or a boolean
 * (`007`, `1e3`, `0o755`, `yes` in older YAML, `1.10`), the text stays as it was written. Nothing else changes; `null`
 * stays `null`, since an empty value is no text.
 */
export function readTypedScalars(value: JsonValue, schema: JsonValue, place: ScalarPlace): JsonValue {
  const { source, pointer = "", root = schema, known = new Map(), shared } = place;
  const reading = { source, root, steps: pointerSteps(pointer), known };
  if (shared === undefined || !isJsonObject(value)) return read(value, schema, reading);
  const { branches } = expectation(schema, reading);
  return readMembers(value, branches, reading, (member, work) => {
    return typeof member === "object" && member !== null ? shared.of(member, work) : work();
  });
}

interface Reading {
  readonly source: ScalarPlace["source"];
  readonly root: JsonValue;
  readonly steps: (string | number)[];
  /** What was found out about schemas: one may describe every entry of a long list. */
  readonly known: KnownSchemas;
}

/** What a schema says of a value. */
interface Expectation {
  /** The schema with its combined and referred ones. */
  readonly branches: readonly JsonObject[];
  readonly types: ReadonlySet<string>;
}

function read(value: JsonValue, schema: JsonValue, reading: Reading): JsonValue {
  if (schema === ANY_VALUE || value === null || typeof value === "string") return value;
  const { branches, types } = expectation(schema, reading);
  if (isJsonArray(value)) return readItems(value, branches, reading);
  if (isJsonObject(value)) return readMembers(value, branches, reading);
  if (!wantsText(value, types)) return value;
  return reading.source(jsonPointer(reading.steps)) ?? value;
}

/** The list itself where nothing in it is another. */
function readItems(value: readonly JsonValue[], branches: Expectation["branches"], reading: Reading): JsonValue {
  const items = itemSchema(branches);
  let copy: JsonValue[] | undefined;
  for (const [i, item] of value.entries()) {
    const made = inside(i, reading, item, items);
    if (made === item) continue;
    copy ??= [...value];
    copy[i] = made;
  }
  return copy ?? value;
}

/** The mapping itself where nothing in it is another. */
function readMembers(
  value: JsonObject,
  branches: Expectation["branches"],
  reading: Reading,
  once: (member: JsonValue, work: () => JsonValue) => JsonValue = (_member, work) => work(),
): JsonValue {
  let changed: Map<string, JsonValue> | undefined;
  for (const name of Object.keys(value)) {
    const member = value[name];
    // Most members are texts, which stay as they are.
    if (member === undefined || member === null || typeof member === "string") continue;
    const made = once(member, () => inside(name, reading, member, memberSchema(branches, name)));
    if (made !== member) (changed ??= new Map<string, JsonValue>()).set(name, made);
  }
  return changed === undefined ? value : withMembers(value, changed);
}

/** A copy with other members, in the same order. */
export function withMembers(value: JsonObject, changed: ReadonlyMap<string, JsonValue>): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, changed.get(name) ?? member]));
}

function expectation(schema: JsonValue, { root, known }: Reading): Expectation {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const branches = schemaBranches(schema, root);
  const made = { branches, types: new Set(branches.flatMap((branch) => typeNames(branch))) };
  known.set(schema, made);
  return made;
}

function inside(step: string | number, reading: Reading, value: JsonValue, schema: JsonValue): JsonValue {
  reading.steps.push(step);
  const made = read(value, schema, reading);
  reading.steps.pop();
  return made;
}

/** Whether text fits and the value as it was read does not. */
function wantsText(value: JsonValue, types: ReadonlySet<string>): boolean {
  const name = jsonTypeName(value);
  const fits = types.has(name) || (name === "integer" && types.has("number"));
  return types.has("string") && !fits;
}

/** The type names a schema says; those of its values where it has only values. */
export function typeNames(schema: JsonObject): readonly string[] {
  const type = ownText(schema, "type");
  if (type !== "") return [type];
  const types = ownList(schema, "type");
  if (types !== undefined) return types.filter((name) => typeof name === "string");
  return (ownList(schema, "enum") ?? []).map(jsonTypeName);
}

/** The schema with its combined and referred ones, which together say what a value may be. */
function schemaBranches(schema: JsonValue, root: JsonValue): readonly JsonObject[] {
  const found: JsonObject[] = [];
  const open: JsonValue[] = [schema];
  for (let next = open.pop(); next !== undefined && found.length < 100; next = open.pop()) {
    if (!isJsonObject(next)) continue;
    found.push(next);
    for (const key of ["anyOf", "oneOf", "allOf"]) {
      for (const part of ownList(next, key) ?? []) open.push(part);
    }
    open.push(referred(ownText(next, "$ref"), root));
  }
  return found;
}

/** Only references into the same schema; others are none of ours. */
function referred(reference: string, root: JsonValue): JsonValue {
  if (reference !== "#" && !reference.startsWith("#/")) return null;
  let at: JsonValue | undefined = root;
  for (const step of pointerSteps(reference.slice(1))) {
    at = isJsonObject(at) ? ownValue(at, step) : undefined;
  }
  return at ?? null;
}

function itemSchema(branches: readonly JsonObject[]): JsonValue {
  return branches.map((branch) => ownObject(branch, "items")).find((items) => items !== undefined) ?? ANY_VALUE;
}

function memberSchema(branches: readonly JsonObject[], name: string): JsonValue {
  for (const branch of branches) {
    const own = ownValue(ownObject(branch, "properties") ?? {}, name);
    if (own !== undefined) return own;
  }
  return (
    branches.map((branch) => ownObject(branch, "additionalProperties")).find((each) => each !== undefined) ?? ANY_VALUE
  );
}
