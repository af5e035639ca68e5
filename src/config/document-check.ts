import { Ajv } from "ajv";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, isJsonObject } from "../core/json.ts";
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

/**
 * Compiles a check against a JSON Schema (draft-07). A key whose schema says `"x-not-supported": true` is refused as
 * not supported yet; `patternErrorMessage` words what does not fit `pattern`, as editors do.
 */
export function createDocumentCheck(schema: JsonObject): DocumentCheck {
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    verbose: true,
    validateFormats: false,
    validateSchema: false,
    // Compiles in half the time; what it saves in a check is nothing beside that.
    code: { optimize: false },
  });
  const validate = ajv.compile(schema);
  // At most as many as there are schemas in this one.
  const known: KnownSchemas = new Map();
  return (document) => {
    const value = readTypedScalars(document.value, schema, { source: document.scalarSource, known });
    if (!isJsonObject(value)) return { value: document.value, issues: [] };
    const fits = validate(holdsBigint(value) ? withoutBigints(value) : value);
    return { value, issues: fits ? [] : wordSchemaErrors(validate.errors ?? [], value) };
  };
}

function holdsBigint(value: JsonValue): boolean {
  if (typeof value !== "object" || value === null) return typeof value === "bigint";
  if (isJsonArray(value)) return value.some(holdsBigint);
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (typeof member !== "string" && member !== undefined && holdsBigint(member)) return true;
  }
  return false;
}

/** The validator knows no `bigint`; their nearest double is of the same type and on the same side of a limit. */
function withoutBigints(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(withoutBigints);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutBigints(member)]));
}
