import type { ErrorObject } from "ajv";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject, jsonPointer, ownValue, pointerSteps, stringifyJson } from "../core/json.ts";
import { didYouMean } from "../core/nearest.ts";
import { ownList, ownObject, ownText } from "./own-values.ts";
import { inline, keyText, pathText, valueText } from "./wording.ts";

/** Most allowed words that a message lists. */
const MAX_LISTED = 16;

/** Most errors that are put in words; a file that has more is no slip. */
const MAX_WORDED = 100;

/** JSON Schema's types as messages name them. */
const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping",
  null: "nothing",
};

/** A validator's error, made safe to read. */
interface SchemaError {
  readonly pointer: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The schema that holds the keyword. */
  readonly schema: JsonObject;
  readonly value: JsonValue;
}

/** What is wrong with a value, by keyword; stands behind the value's name. */
const REASONS: Readonly<Record<string, (error: SchemaError) => string>> = {
  type: ({ params, value }) => misfitWords([params["type"]].flat().map(String), value),
  enum: ({ schema, value }) => expectedWords(ownList(schema, "enum") ?? [], value),
  const: ({ schema, value }) => expectedWords([ownValue(schema, "const") ?? null], value),
  pattern: patternWords,
  minimum: outOfRange,
  maximum: outOfRange,
  exclusiveMinimum: outOfRange,
  exclusiveMaximum: outOfRange,
  minLength: ({ params }) =>
    params["limit"] === 1 ? "expected text, got empty text" : `expected at least ${word(params["limit"])} characters`,
  maxLength: ({ params }) => `expected at most ${word(params["limit"])} characters`,
  minItems: ({ params }) => `expected at least ${word(params["limit"])} entries`,
  minProperties: ({ params }) => `expected at least ${word(params["limit"])} entries`,
  maxItems: ({ params }) => `expected at most ${word(params["limit"])} entries`,
  maxProperties: ({ params }) => `expected at most ${word(params["limit"])} entries`,
  uniqueItems: ({ params }) => `entries ${word(params["i"])} and ${word(params["j"])} (counted from 0) are the same`,
};

/**
 * Puts a validator's errors (ajv, `verbose`) in our words: one issue a place, the first that was found there. Values
 * are shown as the document has them, since the validator saw doubles in the place of long integers.
 */
export function wordSchemaErrors(errors: readonly ErrorObject[], document: JsonValue): ConfigIssue[] {
  const issues = new Map<string, ConfigIssue>();
  for (const error of errors.slice(0, MAX_WORDED)) {
    const issue = toIssue({
      pointer: error.instancePath,
      keyword: error.keyword,
      params: error.params,
      schema: isJsonObject(error.parentSchema) ? error.parentSchema : {},
      value: valueAt(document, error.instancePath),
    });
    if (!issues.has(issue.pointer)) issues.set(issue.pointer, issue);
  }
  return [...issues.values()];
}

/** The types a value may have, in words. */
function typeWords(types: readonly string[]): string {
  return types.map((type) => TYPE_WORDS[type] ?? type).join(" or ");
}

function valueAt(document: JsonValue, pointer: string): JsonValue {
  let at: JsonValue | undefined = document;
  for (const step of pointerSteps(pointer)) {
    if (Array.isArray(at)) at = at[Number(step)] as JsonValue | undefined;
    else at = at !== undefined && isJsonObject(at) ? ownValue(at, step) : undefined;
  }
  return at ?? null;
}

/** For a value of another type. */
export function misfitWords(types: readonly string[], value: JsonValue): string {
  const answer = types.includes("boolean") && typeof value === "string" ? /^(?:(yes|on)|no|off)$/i.exec(value) : null;
  const mend = answer === null ? "" : `: write ${answer[1] !== undefined}`;
  return `expected ${typeWords(types)}, got ${valueText(value)}${mend}`;
}

/** For what is known and has no effect yet. */
export function notSupportedYet(what: string, mend = "remove it"): string {
  return `${what} is not supported yet: ${mend}`;
}

function toIssue(error: SchemaError): ConfigIssue {
  const { pointer, keyword, params, schema } = error;
  switch (keyword) {
    case "additionalProperties":
      return unknownKey(pointer, String(params["additionalProperty"]), schema);
    case "required":
      return missingKey(pointer, String(params["missingProperty"]), schema);
    default: {
      const where = pathText(pointer) || "the document";
      if (ownValue(schema, "x-not-supported") === true) return { pointer, message: notSupportedYet(where) };
      const reason = REASONS[keyword]?.(error) ?? `${valueText(error.value)} does not fit what is allowed here`;
      return { pointer, message: `${where}: ${reason}` };
    }
  }
}

function unknownKey(pointer: string, name: string, schema: JsonObject): ConfigIssue {
  const known = Object.entries(propertiesOf(schema));
  const near = didYouMean(
    name,
    known.map(([key]) => key),
  );
  const inForce = known.filter(([, each]) => !isJsonObject(each) || ownValue(each, "x-not-supported") !== true);
  const mend =
    near === ""
      ? listed(
          inForce.map(([key]) => keyText(key)),
          "known here: ",
        )
      : near;
  return {
    pointer: pointer + jsonPointer([name]),
    message: `unknown key ${keyText(name)}${within(pointer)}${mend === "" ? "" : `; ${mend}`}`,
  };
}

function missingKey(pointer: string, name: string, schema: JsonObject): ConfigIssue {
  const wanted = ownValue(propertiesOf(schema), name);
  const allowed = isJsonObject(wanted) ? (ownValue(wanted, "enum") ?? ownValue(wanted, "const")) : undefined;
  const mend = allowed === undefined ? "" : `; ${listed([allowed].flat().map(wordText), "allowed: ")}`;
  return {
    pointer: pointer + jsonPointer([name]),
    message: `key ${keyText(name)} is missing${within(pointer)}${mend}`,
  };
}

/** For a value that is none of the allowed ones. */
export function expectedWords(values: readonly JsonValue[], value: JsonValue): string {
  const words = values.filter((each) => typeof each === "string");
  const near = typeof value === "string" ? didYouMean(value, words) : "";
  const expected = listed(values.map(wordText), values.length === 1 ? "expected " : "expected one of ");
  return `${expected}; got ${valueText(value)}${near === "" ? "" : `; ${near}`}`;
}

/** Wording of a pattern, and the mend for a number without the unit that it needs. */
function patternWords({ params, schema, value }: SchemaError): string {
  const expected = ownText(schema, "patternErrorMessage") || `expected text that fits ${word(params["pattern"])}`;
  const unit = ownText(schema, "x-bare-number-unit");
  const mend = unit !== "" && typeof value === "string" && /^\d+$/.test(value) ? `: write ${value}${unit}` : "";
  return `${expected}; got ${valueText(value)}${mend}`;
}

function outOfRange({ params, value }: SchemaError): string {
  return `expected a number ${word(params["comparison"])} ${word(params["limit"])}, got ${valueText(value)}`;
}

function propertiesOf(schema: JsonObject): JsonObject {
  return ownObject(schema, "properties") ?? {};
}

/** A number or a sign that the validator names. */
function word(param: unknown): string {
  return typeof param === "string" || typeof param === "number" ? String(param) : "";
}

function within(pointer: string): string {
  return pointer === "" ? "" : ` in ${pathText(pointer)}`;
}

function wordText(value: JsonValue): string {
  return inline(stringifyJson(value));
}

function listed(words: readonly string[], before: string): string {
  if (words.length === 0) return "";
  const rest = words.length - MAX_LISTED;
  return `${before}${words.slice(0, MAX_LISTED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
