import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { headerValue } from "./request-headers.ts";

/** A parameter that goes along as a header too. Source: MCP 2026-07-28, server/tools, `x-mcp-header`. */
export interface ParamHeader {
  /** Where it stands in the arguments. */
  readonly path: readonly string[];
  /** Name of the header, `Mcp-Param-…`. */
  readonly header: string;
}

/** Outcome of looking for them in a tool's input schema. */
export type ParamHeaders =
  | { readonly ok: true; readonly headers: readonly ParamHeader[] }
  /** The tool must not be used over HTTP. `problem`: why, in one line. */
  | { readonly ok: false; readonly problem: string };

const KEYWORD = "x-mcp-header";

/** Source: RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const PRIMITIVES = new Set<JsonValue>(["string", "integer", "boolean"]);

/** Keywords that lead on to schemas, where none of the arguments has a fixed place. */
const ELSEWHERE = [
  "items",
  "prefixItems",
  "additionalProperties",
  "patternProperties",
  "anyOf",
  "oneOf",
  "allOf",
  "not",
  "if",
  "then",
  "else",
  "$defs",
  "definitions",
  "contains",
  "propertyNames",
  "unevaluatedProperties",
  "unevaluatedItems",
  "dependentSchemas",
];

const MAX_DEPTH = 32;

/** The parameters that go along as headers, by the annotations of a tool's input schema. */
export function paramHeaders(inputSchema: JsonObject): ParamHeaders {
  const headers: ParamHeader[] = [];
  const problem = Object.hasOwn(inputSchema, KEYWORD)
    ? "the schema as a whole has `x-mcp-header`"
    : walk(inputSchema, [], headers);
  if (problem !== undefined) return { ok: false, problem };
  const names = headers.map(({ header }) => header.toLowerCase());
  const twice = headers.find((_each, i) => names.indexOf(names[i] ?? "") !== i);
  return twice === undefined
    ? { ok: true, headers }
    : { ok: false, problem: `two parameters have the header \`${twice.header}\`` };
}

/** Their values in one call; one that is absent or null has no header. */
export function filledParamHeaders(headers: readonly ParamHeader[], args: JsonObject): Record<string, string> {
  const filled: Record<string, string> = {};
  for (const { path, header } of headers) {
    let value: JsonValue | undefined = args;
    for (const step of path) value = value !== undefined && isJsonObject(value) ? ownValue(value, step) : undefined;
    if (value === undefined || value === null || typeof value === "object") continue;
    filled[header] = headerValue(String(value));
  }
  return filled;
}

/** Collects the annotations of properties; the problem where one stands where it must not. */
function walk(schema: JsonObject, path: readonly string[], found: ParamHeader[]): string | undefined {
  if (path.length > MAX_DEPTH) return undefined;
  const properties = ownValue(schema, "properties") ?? null;
  for (const [name, property] of isJsonObject(properties) ? Object.entries(properties) : []) {
    if (!isJsonObject(property)) continue;
    const at = [...path, name];
    const problem = annotated(property, at, found) ?? walk(property, at, found);
    if (problem !== undefined) return problem;
  }
  const stray = ELSEWHERE.find((keyword) => holdsAnnotation(ownValue(schema, keyword), 0));
  if (stray === undefined) return undefined;
  return `\`x-mcp-header\` stands under \`${stray}\`, where a parameter has no fixed place`;
}

function annotated(property: JsonObject, path: readonly string[], found: ParamHeader[]): string | undefined {
  const header = ownValue(property, KEYWORD);
  if (header === undefined) return undefined;
  const at = `\`x-mcp-header\` of \`${path.join(".")}\``;
  if (typeof header !== "string" || !TOKEN.test(header)) return `${at} is no name of a header`;
  if (!PRIMITIVES.has(ownValue(property, "type") ?? null)) return `${at}, which is no string, integer or boolean`;
  found.push({ path, header: `Mcp-Param-${header}` });
  return undefined;
}

function holdsAnnotation(value: JsonValue | undefined, depth: number): boolean {
  if (value === undefined || depth > MAX_DEPTH) return false;
  if (isJsonArray(value)) return value.some((each) => holdsAnnotation(each, depth + 1));
  if (!isJsonObject(value)) return false;
  return Object.hasOwn(value, KEYWORD) || Object.values(value).some((each) => holdsAnnotation(each, depth + 1));
}
