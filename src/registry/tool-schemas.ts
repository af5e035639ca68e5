import type { SourceDocument } from "../config/source-document.ts";
import { keyText, valueText } from "../config/wording.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject, ownValue, stringifyJson } from "../core/json.ts";
import type { SharedResults } from "../core/shared-values.ts";
import { DIALECTS_IN_WORDS, dialectOf } from "../pipeline/schema/dialect.ts";
import { TOO_COMPLEX } from "../pipeline/schema/schema-refused.ts";
import { type ReadSchema, readParams } from "./params.ts";
import { checkSchemaValues } from "./schema-checks.ts";
import { readSchemaScalars } from "./schema-scalars.ts";

/** What is wrong with a JSON Schema for arguments or results, in one line; `undefined` where it can be used. */
export type SchemaProblem = (schema: JsonObject) => string | undefined;

/** What schemas are read with. */
export interface SchemaTools {
  readonly schemaProblem: SchemaProblem;
  /** Schemas of parts that declarations have in common. */
  readonly schemas: SharedResults<ReadSchema>;
}

/** Schema of a tool without parameters. */
const NO_PARAMS: JsonObject = { type: "object", properties: {}, additionalProperties: false };

/** Reads what a declaration says of a tool's arguments: the short form `params`, or `input_schema`, or neither. */
export function readInputSchema(keys: JsonObject, document: SourceDocument, tools: SchemaTools): ReadSchema {
  const params = ownValue(keys, "params");
  const full = ownValue(keys, "input_schema");
  if (params !== undefined && full !== undefined) {
    return refused("/input_schema", "`params` and `input_schema` are both set: keep one");
  }
  if (Array.isArray(params)) return shared(params, tools, (problem) => readShortForm(params, document, problem));
  if (full === undefined || !isJsonObject(full)) return { schema: NO_PARAMS, issues: [], notes: [] };
  const type = ownValue(full, "type") ?? "object";
  if (type !== "object") {
    return refused(
      "/input_schema",
      `\`input_schema\`: arguments are always a mapping: write \`type: object\`, got ${valueText(type)}`,
    );
  }
  return shared(full, tools, (problem) => readFullForm({ type, ...full }, "input_schema", document, problem));
}

/** Reads `output_schema`. */
export function readOutputSchema(
  keys: JsonObject,
  document: SourceDocument,
  tools: SchemaTools,
): ReadSchema | undefined {
  const schema = ownValue(keys, "output_schema");
  return schema !== undefined && isJsonObject(schema)
    ? shared(schema, tools, (problem) => readFullForm(schema, "output_schema", document, problem))
    : undefined;
}

/** Reads a part of a declaration, once for all that share it. Issues may name a line of one of them. */
function shared(part: object, tools: SchemaTools, read: (problem: SchemaProblem) => ReadSchema): ReadSchema {
  return tools.schemas.of(
    part,
    () => read(tools.schemaProblem),
    ({ issues }) => issues.length === 0,
  );
}

function readShortForm(params: readonly JsonValue[], document: SourceDocument, problem: SchemaProblem): ReadSchema {
  const read = readParams(params, document);
  const whole = read.issues.length > 0 ? undefined : problem(read.schema);
  if (whole === undefined) return read;
  const properties = ownValue(read.schema, "properties") ?? null;
  const issues: ConfigIssue[] = [];
  for (const [i, [name, schema]] of Object.entries(isJsonObject(properties) ? properties : {}).entries()) {
    // Patterns take long to compile: up to the first problem it has been done, and is remembered.
    if (issues.length > 0 && stringifyJson(schema).includes('"pattern')) continue;
    const why = problem({ type: "object", properties: { [name]: schema } });
    if (why !== undefined) issues.push({ pointer: `/params/${i}`, message: `parameter ${keyText(name)}: ${why}` });
    else if (whole.startsWith(TOO_COMPLEX)) break;
  }
  return { ...read, issues: issues.length > 0 ? issues : [{ pointer: "/params", message: `\`params\`: ${whole}` }] };
}

function readFullForm(schema: JsonObject, key: string, document: SourceDocument, problem: SchemaProblem): ReadSchema {
  const read = readSchemaScalars(schema, document.scalarSource, [key]);
  if (dialectOf(read) === undefined) {
    const named = valueText(ownValue(read, "$schema") ?? null);
    return refused(
      `/${key}/$schema`,
      `\`${key}\`: expected JSON Schema ${DIALECTS_IN_WORDS} in \`$schema\`, got ${named}`,
    );
  }
  const why = problem(read);
  const issues: ConfigIssue[] = why === undefined ? [] : [{ pointer: `/${key}`, message: `\`${key}\`: ${why}` }];
  return { schema: read, issues: [...issues, ...checkSchemaValues(read, `/${key}`, true)], notes: [] };
}

function refused(pointer: string, message: string): ReadSchema {
  return { schema: NO_PARAMS, issues: [{ pointer, message }], notes: [] };
}
