import {
  canonicalJson,
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  ownValue,
} from "../core/json.ts";

/** Keywords whose meaning is the same whatever stands beside them. */
const INDEPENDENT: ReadonlySet<string> = new Set([
  "type",
  "enum",
  "const",
  "format",
  "pattern",
  "multipleOf",
  "uniqueItems",
  "required",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "$comment",
]);

/** A schema for what has to fit both; where they cannot be told as one, the first. */
export function meetSchema(one: JsonValue, other: JsonValue): JsonValue {
  if (saysNothing(one)) return other;
  if (saysNothing(other) || !isJsonObject(one) || !isJsonObject(other)) return one;
  const added = Object.entries(other).filter(([key]) => ownValue(one, key) === undefined);
  if (!added.every(([key]) => INDEPENDENT.has(key))) return one;
  return Object.fromEntries([...Object.entries(one), ...added]);
}

/** A schema for what has to fit one of them. Values that are listed become one list. */
export function eitherSchema(schemas: readonly JsonValue[]): JsonValue {
  const distinct = distinctOf(schemas);
  const [first = true] = distinct;
  if (distinct.length <= 1) return first;
  if (distinct.some(saysNothing)) return true;
  return oneList(distinct) ?? { anyOf: distinct };
}

function distinctOf(values: readonly JsonValue[]): readonly JsonValue[] {
  return [...new Map(values.map((value) => [canonicalJson(value), value])).values()];
}

function saysNothing(schema: JsonValue): boolean {
  return schema === true || (isJsonObject(schema) && Object.keys(schema).length === 0);
}

/** `{const: "a"}` and `{const: "b"}` as `{enum: ["a", "b"]}`, with the type and the description that they share. */
function oneList(schemas: readonly JsonValue[]): JsonObject | undefined {
  const lists: JsonValue[] = [];
  for (const schema of schemas) {
    const listed = isJsonObject(schema) ? listedBy(schema) : undefined;
    if (listed === undefined) return undefined;
    lists.push(...listed);
  }
  const shared = ["type", "description"].flatMap((key) => {
    const [first, ...others] = schemas.map((schema) => (isJsonObject(schema) ? ownValue(schema, key) : undefined));
    return first !== undefined && others.every((each) => each !== undefined && jsonEqual(first, each))
      ? [[key, first] as const]
      : [];
  });
  return { ...Object.fromEntries(shared), enum: distinctOf(lists) };
}

function listedBy(schema: JsonObject): readonly JsonValue[] | undefined {
  const fixed = ownValue(schema, "const");
  const list = ownValue(schema, "enum");
  if (fixed !== undefined) return [fixed];
  return isJsonArray(list) ? list : undefined;
}
