import { isJsonArray, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import type { NamedDialect } from "./dialect.ts";
import { SchemaRefused } from "./schema-refused.ts";

/** Keywords that draft-06 does not know and draft-07 does. */
const NEW_IN_07 = ["if", "then", "else"] as const;

/** Keywords that draft-04 does not know and draft-07 does. */
const NEW_IN_06 = ["const", "contains", "propertyNames"] as const;

/** Puts one schema into the words of the version whose rules count, without the schemas inside it. */
export type Translate = (schema: JsonObject, root: JsonObject) => JsonObject;

/** How schemas of a version are put into the words of `RULES_OF`. @throws SchemaRefused. */
export function translatorOf(dialect: NamedDialect): Translate {
  switch (dialect) {
    case "draft-04":
      return from04;
    case "draft-06":
      return (schema) => without(schema, NEW_IN_07);
    case "2019-09":
      return new From2019().translate;
    case "draft-07":
    case "2020-12":
      return (schema) => schema;
  }
}

/** `exclusiveMinimum` is a flag of `minimum` there. Source: draft-wright-json-schema-validation-01, changes. */
function from04(schema: JsonObject): JsonObject {
  const copy: Record<string, JsonValue> = { ...without(schema, [...NEW_IN_06, ...NEW_IN_07]) };
  for (const [flag, limit] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    const value = copy[limit];
    if (copy[flag] !== true || value === undefined) delete copy[flag];
    else {
      copy[flag] = value;
      delete copy[limit];
    }
  }
  return copy;
}

/** What 2020-12 writes in other words. Source: its release notes, https://json-schema.org/draft/2020-12/release-notes. */
class From2019 {
  #innerId: boolean | undefined;
  #contains = false;
  #unevaluated = false;

  readonly translate = (schema: JsonObject, root: JsonObject): JsonObject => {
    const { items, additionalItems, $recursiveRef, ...rest } = without(schema, [
      "prefixItems",
      "$dynamicRef",
      "$dynamicAnchor",
    ]);
    this.#watch(schema);
    const copy: Record<string, JsonValue> = rest;
    if (items !== undefined && isJsonArray(items)) {
      if (items.length > 0) copy["prefixItems"] = items;
      if (additionalItems !== undefined) copy["items"] = additionalItems;
    } else if (items !== undefined) copy["items"] = items;
    if ($recursiveRef !== undefined) this.#recursive(copy, $recursiveRef, root);
    return copy;
  };

  /** Within one resource it leads to that resource, as a plain reference does. */
  #recursive(copy: Record<string, JsonValue>, reference: JsonValue, root: JsonObject): void {
    this.#innerId ??= hasInnerId(root);
    if (this.#innerId) {
      throw new SchemaRefused("`$recursiveRef` in a schema of several `$id` is not supported: use `$ref`");
    }
    // Beside a `$ref` both count.
    if (copy["$ref"] === undefined) copy["$ref"] = reference;
    else copy["$dynamicRef"] = reference;
  }

  /** In 2019-09 `contains` has nothing to say of `unevaluatedItems`, in 2020-12 it has. */
  #watch(schema: JsonObject): void {
    this.#contains ||= ownValue(schema, "contains") !== undefined;
    this.#unevaluated ||= ownValue(schema, "unevaluatedItems") !== undefined;
    if (!this.#contains || !this.#unevaluated) return;
    throw new SchemaRefused(
      "`contains` and `unevaluatedItems` in one schema of 2019-09 are not supported: use 2020-12",
    );
  }
}

function hasInnerId(root: JsonObject): boolean {
  const visit = (value: JsonValue): boolean => {
    if (typeof value !== "object" || value === null) return false;
    const isInner = value !== root && typeof ownValue(value as JsonObject, "$id") === "string";
    return isInner || Object.values(value).some(visit);
  };
  return visit(root);
}

function without(schema: JsonObject, keywords: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)));
}
