import { ownList, ownText } from "../config/own-values.ts";
import type { SourceDocument } from "../config/source-document.ts";
import { keyText } from "../config/wording.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject, ownValue } from "../core/json.ts";
import { checkSchemaValues } from "./schema-checks.ts";
import { readSchemaScalars } from "./schema-scalars.ts";

/** Types of a parameter. */
export const PARAM_TYPES = ["string", "integer", "number", "boolean", "array", "object"] as const;

/** Keys of a parameter that its JSON Schema takes over as they are, with the types they have an effect on. */
const KEYWORDS: readonly { readonly key: string; readonly types: readonly string[] }[] = [
  { key: "description", types: PARAM_TYPES },
  { key: "enum", types: PARAM_TYPES },
  { key: "default", types: PARAM_TYPES },
  { key: "examples", types: PARAM_TYPES },
  { key: "format", types: PARAM_TYPES },
  { key: "pattern", types: ["string"] },
  { key: "minLength", types: ["string"] },
  { key: "maxLength", types: ["string"] },
  { key: "contentEncoding", types: ["string"] },
  { key: "minimum", types: ["integer", "number"] },
  { key: "maximum", types: ["integer", "number"] },
  { key: "items", types: ["array"] },
  { key: "properties", types: ["object"] },
];

/** A schema with what was found on the way. */
export interface ReadSchema {
  readonly schema: JsonObject;
  readonly issues: readonly ConfigIssue[];
  readonly notes: readonly ConfigIssue[];
}

/**
 * Makes the JSON Schema of the short form `params`, whose entries have the right shape already; those that have not
 * are `null` here and left out. Parameters that are not declared are refused by it (`additionalProperties: false`).
 */
export function readParams(params: readonly JsonValue[], document: SourceDocument): ReadSchema {
  const issues: ConfigIssue[] = [];
  const notes: ConfigIssue[] = [];
  const properties = new Map<string, JsonObject>();
  const places = new Map<string, string>();
  const required: string[] = [];
  params.forEach((param, i) => {
    if (!isJsonObject(param)) return;
    const pointer = `/params/${i}`;
    const name = ownText(param, "name");
    const earlier = places.get(name);
    if (earlier !== undefined) issues.push(declaredTwice(document, name, earlier, pointer));
    places.set(name, pointer);
    addIdleKeys(issues, param, pointer);
    const schema = readSchemaScalars(paramSchema(param), document.scalarSource, ["params", i]);
    issues.push(...checkSchemaValues(schema, pointer, false));
    properties.set(name, schema);
    if (ownValue(param, "required") !== true) return;
    required.push(name);
    if (Object.hasOwn(param, "default")) {
      notes.push({
        pointer: `${pointer}/default`,
        message: `parameter ${keyText(name)} is required, so its \`default\` is never used`,
      });
    }
  });
  const schema = {
    type: "object",
    properties: Object.fromEntries(properties),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
  return { schema, issues, notes };
}

function paramSchema(param: JsonObject): JsonObject {
  const type = ownText(param, "type");
  const nullable = ownValue(param, "nullable") === true;
  const schema: Record<string, JsonValue> = { type: nullable ? [type, "null"] : type };
  for (const { key } of KEYWORDS) {
    const value = ownValue(param, key);
    if (value !== undefined) schema[key] = value;
  }
  const values = nullable ? ownList(param, "enum") : undefined;
  if (values !== undefined && !values.includes(null)) schema["enum"] = [...values, null];
  return schema;
}

/** Finds keys without effect on the parameter's type. */
function addIdleKeys(issues: ConfigIssue[], param: JsonObject, pointer: string): void {
  const type = ownText(param, "type");
  for (const { key, types } of KEYWORDS) {
    if (!Object.hasOwn(param, key) || types.includes(type)) continue;
    const name = keyText(ownText(param, "name"));
    const message = `parameter ${name}: \`${key}\` has no effect on type ${type}: remove it`;
    issues.push({ pointer: `${pointer}/${key}`, message });
  }
}

function declaredTwice(document: SourceDocument, name: string, first: string, second: string): ConfigIssue {
  const before = document.position(first).line;
  const after = document.position(second).line;
  const where = before === after ? `line ${after}` : `lines ${before} and ${after}`;
  return { pointer: second, message: `parameter ${keyText(name)} is declared twice, on ${where}: keep one` };
}
