/** What a keyword's value holds. */
export type KeywordShape =
  /** Taken over as it stands. */
  | "value"
  /** A number of things: too large for a double or not, it is one. */
  | "count"
  /** A schema for the same value. */
  | "here"
  /** A list of schemas for the same value. */
  | "here-list"
  /** Schemas by name for the same value; a list of names instead of a schema is taken over. */
  | "here-map"
  /** A schema for each of any number of values below. */
  | "each"
  /** A schema for each of any number of values below, or a list of schemas for one each. */
  | "each-or-list"
  /** A list of schemas for one value below each. */
  | "list"
  /** Schemas by the name of the value below. */
  | "map"
  /** Schemas by a pattern for the names of values below. */
  | "pattern-map";

/**
 * The keywords that count when arguments are checked, those of draft-07 and of 2020-12. All others are left out,
 * unknown ones included. Sources: https://json-schema.org/draft-07 and https://json-schema.org/draft/2020-12.
 */
export const KEYWORDS: ReadonlyMap<string, KeywordShape> = new Map([
  ["type", "value"],
  ["enum", "value"],
  ["const", "value"],
  ["default", "value"],
  ["format", "value"],
  ["pattern", "value"],
  ["required", "value"],
  ["dependentRequired", "value"],
  ["uniqueItems", "value"],
  ["minimum", "value"],
  ["maximum", "value"],
  ["exclusiveMinimum", "value"],
  ["exclusiveMaximum", "value"],
  ["multipleOf", "value"],
  ["minLength", "count"],
  ["maxLength", "count"],
  ["minItems", "count"],
  ["maxItems", "count"],
  ["minContains", "count"],
  ["maxContains", "count"],
  ["minProperties", "count"],
  ["maxProperties", "count"],
  ["not", "here"],
  ["if", "here"],
  ["then", "here"],
  ["else", "here"],
  ["allOf", "here-list"],
  ["anyOf", "here-list"],
  ["oneOf", "here-list"],
  ["dependentSchemas", "here-map"],
  ["dependencies", "here-map"],
  ["contains", "each"],
  ["propertyNames", "each"],
  ["additionalProperties", "each"],
  ["additionalItems", "each"],
  ["unevaluatedItems", "each"],
  ["unevaluatedProperties", "each"],
  ["items", "each-or-list"],
  ["prefixItems", "list"],
  ["properties", "map"],
  ["patternProperties", "pattern-map"],
] as const satisfies readonly (readonly [string, KeywordShape])[]);

/** What every reference begins with in a schema made ready. */
export const DEFS = "#/$defs/";
