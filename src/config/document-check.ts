import { Ajv, type Options } from "ajv";
import type { DataValidateFunction, DataValidationCxt } from "ajv/dist/types/index.js";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, isJsonObject, ownValue } from "../core/json.ts";
import { freezeJson, SharedResults } from "../core/shared-values.ts";
import { ownObject } from "./own-values.ts";
import { wordSchemaErrors } from "./schema-errors.ts";
import type { SourceDocument } from "./source-document.ts";
import { type KnownSchemas, readTypedScalars } from "./typed-scalars.ts";

/** A document after its check. */
export interface CheckedDocument {
  /** The document with its scalars read by their declared types. */
  readonly value: JsonObject;
  /** Everything that does not fit the schema; the pointer of a missing key is where it would stand. */
  readonly issues: readonly ConfigIssue[];
}

/** Checks documents against one schema. */
export type DocumentCheck = (document: SourceDocument) => CheckedDocument;

const OPTIONS: Options = {
  allErrors: true,
  strict: false,
  verbose: true,
  validateFormats: false,
  validateSchema: false,
  // Compiles in half the time; what it saves in a check is nothing beside that.
  code: { optimize: false },
};

/** Stands for the schema of an entry that documents may have in common. */
const PART = "x-part";

/**
 * Compiles a check against a JSON Schema (draft-07) without references. A key whose schema says `"x-not-supported": true`
 * is refused as not supported yet; `patternErrorMessage` words what does not fit `pattern`, as editors do. Lists and
 * mappings at the top that are frozen are checked once for all documents that share them.
 */
export function createDocumentCheck(schema: JsonObject): DocumentCheck {
  const ajv = new Ajv(OPTIONS);
  ajv.addKeyword({ keyword: PART, errors: "full", compile: (part: JsonObject) => partCheck(ajv, part) });
  const validate = ajv.compile(withParts(schema));
  // At most as many as there are schemas in this one.
  const known: KnownSchemas = new Map();
  const shared = new SharedResults<JsonValue>(freezeJson);
  const long = new SharedResults<boolean>();
  return (document) => {
    const value = readTypedScalars(document.value, schema, { source: document.scalarSource, known, shared });
    if (!isJsonObject(value)) return { value: document.value, issues: [] };
    const fits = validate(holdsBigint(value, long) ? withoutBigints(value) : value);
    return { value, issues: fits ? [] : wordSchemaErrors(validate.errors ?? [], value) };
  };
}

/** The schema with those of lists and mappings at the top standing by themselves. */
function withParts(schema: JsonObject): JsonObject {
  const properties = ownObject(schema, "properties") ?? {};
  const parts = Object.entries(properties).map(([key, part]): [string, JsonValue] => {
    const type = isJsonObject(part) ? ownValue(part, "type") : undefined;
    return [key, type === "object" || type === "array" ? { [PART]: part } : part];
  });
  return { ...schema, properties: Object.fromEntries(parts) };
}

/** A check of one entry that remembers which values are right, where these are shared. */
function partCheck(ajv: Ajv, part: JsonObject): DataValidateFunction {
  const validate = ajv.compile(part);
  const fits = new SharedResults<boolean>();
  const check: DataValidateFunction = (value: JsonValue, context?: DataValidationCxt) => {
    const look = (): boolean => validate(value, context);
    const fit = typeof value === "object" && value !== null ? fits.of(value, look, (right) => right) : look();
    if (!fit && validate.errors) check.errors = validate.errors;
    return fit;
  };
  return check;
}

function holdsBigint(value: JsonValue, shared: SharedResults<boolean>): boolean {
  if (typeof value !== "object" || value === null) return typeof value === "bigint";
  return shared.of(value, () => {
    if (isJsonArray(value)) return value.some((item) => holdsBigint(item, shared));
    for (const name of Object.keys(value)) {
      const member = value[name];
      if (typeof member !== "string" && member !== undefined && holdsBigint(member, shared)) return true;
    }
    return false;
  });
}

/** The validator knows no `bigint`; their nearest double is of the same type and on the same side of a limit. */
function withoutBigints(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(withoutBigints);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutBigints(member)]));
}
