import type { FieldViolation } from "../../core/errors.ts";
import { isJsonObject, type JsonValue, jsonPointer } from "../../core/json.ts";
import { didYouMean } from "../../core/nearest.ts";
import { codePointCount } from "../../core/text.ts";
import { type SchemaError, textOf } from "./check.ts";
import { shortText, showPlain, showValue } from "./show-value.ts";

/** Kinds of mistakes in arguments. */
export type ViolationReason =
  | "WRONG_TYPE"
  | "MISSING"
  | "UNKNOWN_PARAMETER"
  | "NOT_IN_ENUM"
  | "OUT_OF_RANGE"
  | "PATTERN_MISMATCH"
  | "FORMAT"
  | "TOO_LARGE"
  | "INVALID";

/** Longest description, in characters. */
const MAX_DESCRIPTION = 300;

/** Longest field, in characters. */
const MAX_FIELD = 200;

/** Most values or names listed in a message. */
const MAX_LISTED = 10;

/** A violation; its texts are cut where they are too long. */
export function violation(field: string, reason: ViolationReason, description: string): FieldViolation {
  return { field: shortText(field, MAX_FIELD), reason, description: shortText(description, MAX_DESCRIPTION) };
}

/** One error of the validator as a line a model can act on. */
export function describeError(error: SchemaError): FieldViolation {
  const describe = DESCRIBERS.get(error.keyword);
  if (describe !== undefined) return describe(error);
  return violation(error.instancePath, "INVALID", `does not fit the schema's "${error.keyword}"`);
}

/** The types that the schema of a `type` error takes. */
export function schemaTypes({ schema }: SchemaError): readonly string[] {
  return [schema].flat().map(textOf);
}

/** `integer`, or `string or integer`. */
export function typeNames(types: Iterable<string>): string {
  return [...new Set(types)].join(" or ");
}

type Describe = (error: SchemaError) => FieldViolation;

function expected(reason: ViolationReason, what: (error: SchemaError) => string): Describe {
  return (error) => violation(error.instancePath, reason, `expected ${what(error)}, got ${showValue(error.data)}`);
}

function compared(words: string): Describe {
  return expected("OUT_OF_RANGE", (error) => `${words} ${showPlain(error.schema)}`);
}

function sized(words: string, unit: string): Describe {
  return (error) =>
    violation(
      error.instancePath,
      "OUT_OF_RANGE",
      `expected ${words} ${error.params["limit"]} ${unit}, got ${size(error.data)}`,
    );
}

function invalid(description: string): Describe {
  return (error) => violation(error.instancePath, "INVALID", description);
}

function missing(description: (error: SchemaError) => string): Describe {
  return (error) =>
    violation(below(error, "missingProperty"), "MISSING", `${description(error)}; ask the user for it, do not guess`);
}

function unknown(param: string): Describe {
  return (error) => {
    const properties: unknown = error.parentSchema?.["properties"];
    const known = isJsonObject(properties) ? Object.keys(properties) : [];
    const near = didYouMean(String(error.params[param]), known);
    const choice = near === "" ? listed("known are", known, String) : near;
    return violation(
      below(error, param),
      "UNKNOWN_PARAMETER",
      choice === "" ? "unknown parameter" : `unknown parameter; ${choice}`,
    );
  };
}

const together = missing((error) => `required together with "${error.params["property"]}"`);

const tooManyItems = sized("at most", "items");

const DESCRIBERS: ReadonlyMap<string, Describe> = new Map<string, Describe>([
  ["type", expected("WRONG_TYPE", (error) => typeNames(schemaTypes(error)))],
  ["required", missing(() => "required parameter missing")],
  ["dependentRequired", together],
  ["dependencies", together],
  ["additionalProperties", unknown("additionalProperty")],
  ["unevaluatedProperties", unknown("unevaluatedProperty")],
  ["enum", expected("NOT_IN_ENUM", (error) => listed("one of", error.schema as JsonValue[], showPlain))],
  ["const", expected("NOT_IN_ENUM", (error) => showPlain(error.schema))],
  ["minimum", compared("at least")],
  ["maximum", compared("at most")],
  ["exclusiveMinimum", compared("more than")],
  ["exclusiveMaximum", compared("less than")],
  ["multipleOf", compared("a multiple of")],
  ["minLength", sized("at least", "characters")],
  ["maxLength", sized("at most", "characters")],
  ["minItems", sized("at least", "items")],
  ["maxItems", tooManyItems],
  ["items", tooManyItems],
  ["additionalItems", tooManyItems],
  ["minProperties", sized("at least", "keys")],
  ["maxProperties", sized("at most", "keys")],
  ["pattern", expected("PATTERN_MISMATCH", (error) => `text matching "${shortText(textOf(error.schema), 100)}"`)],
  ["format", expected("FORMAT", (error) => formatName(String(error.params["format"])))],
  ["uniqueItems", invalid("expected items that all differ")],
  ["contains", invalid("does not hold the items asked for")],
  ["not", invalid("has a value that is not allowed here")],
  ["false schema", invalid("no value is allowed here")],
  ["oneOf", invalid("fits more than one of the forms allowed here")],
]);

const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ["date", "2026-01-31"],
  ["time", "08:30:00Z"],
  ["date-time", "2026-01-31T08:30:00Z"],
  ["duration", "PT1H30M"],
  ["email", "name@example.com"],
  ["uri", "https://example.com/path"],
  ["uuid", "123e4567-e89b-12d3-a456-426614174000"],
]);

function formatName(format: string): string {
  const example = EXAMPLES.get(format);
  return example === undefined ? `a text of format "${format}"` : `a ${format} such as ${example}`;
}

function below(error: SchemaError, param: string): string {
  return `${error.instancePath}${jsonPointer([String(error.params[param])])}`;
}

function listed<T>(words: string, values: readonly T[], show: (value: T) => string): string {
  if (values.length === 0) return "";
  const shown = values.slice(0, MAX_LISTED).map(show).join(", ");
  return values.length > MAX_LISTED ? `${words} ${shown}, … (${values.length} in all)` : `${words} ${shown}`;
}

function size(value: JsonValue): number {
  return typeof value === "string" ? codePointCount(value) : Object.keys(value ?? {}).length;
}
