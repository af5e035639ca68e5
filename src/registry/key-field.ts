import { keyText, valueText } from "../config/wording.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import { isJsonObject, type JsonObject, ownValue } from "../core/json.ts";

/** What the declared parameter for a call's key may say: a key is any text of 1 to 64 visible characters. */
const ALLOWED = new Set(["type", "title", "description", "examples"]);

/** A tool's arguments as callers see them and as its adapter does, who gets the call's key among them. */
export interface KeyFieldSchemas {
  /** Without the parameter that the gateway fills in. */
  readonly callers: JsonObject;
  /** With it, as a text that is always there. */
  readonly adapter: JsonObject;
  readonly issues: readonly ConfigIssue[];
}

/** Takes the parameter that `idempotency_field` names out of a schema of arguments. It need not be declared there. */
export function withoutKeyField(schema: JsonObject, field: string | undefined): KeyFieldSchemas {
  if (field === undefined) return { callers: schema, adapter: schema, issues: [] };
  const properties = objectOf(schema, "properties");
  const { [field]: declared, ...others } = properties;
  const required = (ownValue(schema, "required") ?? []) as readonly string[];
  const rest = required.filter((name) => name !== field);
  const { required: _required, ...plain } = schema;
  return {
    callers: { ...plain, properties: others, ...(rest.length === 0 ? {} : { required: rest }) },
    adapter: { ...plain, properties: { ...properties, [field]: { type: "string" } }, required: [...rest, field] },
    issues: Object.hasOwn(properties, field) ? problemsOf(field, declared) : [],
  };
}

function problemsOf(field: string, declared: unknown): ConfigIssue[] {
  const pointer = "/idempotency_field";
  const what = `\`idempotency_field\`: parameter ${keyText(field)} takes the key of a call, which is any text`;
  if (!isJsonObject(declared)) return [{ pointer, message: `${what}: declare it with \`type: string\`` }];
  const type = ownValue(declared, "type") ?? null;
  if (type !== "string") {
    return [{ pointer, message: `${what}: expected \`type: string\` there, got ${valueText(type)}` }];
  }
  const idle = Object.keys(declared).filter((key) => !ALLOWED.has(key));
  return idle.map((key) => ({ pointer, message: `${what}: remove \`${key}\` there` }));
}

function objectOf(schema: JsonObject, key: string): JsonObject {
  const value = ownValue(schema, key);
  return value !== undefined && isJsonObject(value) ? value : {};
}
