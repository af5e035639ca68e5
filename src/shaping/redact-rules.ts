import type { ConfigIssue } from "../core/adapter.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue, stringifyJson } from "../core/json.ts";
import {
  patternProblem,
  REDACT_FIELDS_SCHEMA,
  REDACT_PATTERNS_SCHEMA,
  REDACT_TOKENS_SCHEMA,
} from "../core/redact-schema.ts";
import type { RedactRules, ResultRules } from "../core/shaper.ts";
import type { Delivery } from "../core/tool.ts";

/** JSON Schema of the `redact:` part of a `result:` block. */
export const REDACT_SCHEMA: JsonObject = {
  type: "object",
  description: "What is masked in results besides the gateway's own secrets; what gateway.yaml names is, too.",
  additionalProperties: false,
  minProperties: 1,
  properties: {
    tokens: { ...REDACT_TOKENS_SCHEMA, default: true },
    fields: REDACT_FIELDS_SCHEMA,
    patterns: REDACT_PATTERNS_SCHEMA,
  },
};

/** The rules of a block with gateway.yaml's; `undefined`: neither says anything. */
export function readRedact(block: JsonValue | undefined, defaults: RedactRules | undefined): RedactRules | undefined {
  if (block === undefined) return defaults;
  return {
    tokens: (get(block, "tokens") ?? defaults?.tokens) !== false,
    fields: [...new Set([...(defaults?.fields ?? []), ...texts(get(block, "fields"))])],
    patterns: [...new Set([...(defaults?.patterns ?? []), ...texts(get(block, "patterns"))])],
  };
}

/** What is wrong with a block; pointers are relative to `result`. */
export function redactIssues(
  block: JsonValue | undefined,
  { format }: ResultRules,
  delivery: Delivery,
): readonly ConfigIssue[] {
  const issues = texts(get(block, "patterns")).flatMap((pattern, i): ConfigIssue[] => {
    const problem = patternProblem(pattern);
    return problem === undefined ? [] : [{ pointer: `/redact/patterns/${i}`, message: problem }];
  });
  if (get(block, "fields") === undefined) return issues;
  const pointer = "/redact/fields";
  if (delivery === "incremental") {
    const message =
      "`redact.fields` needs the whole answer, which `delivery: incremental` passes on in pieces: use `redact.patterns`";
    return [...issues, { pointer, message }];
  }
  if (format !== "text") return issues;
  return [...issues, { pointer, message: "`redact.fields` looks into JSON: remove it, or `format: text`" }];
}

/** Whether what the rules mask can be masked in a text that comes in pieces of any size. */
export function masksInPieces(rules: RedactRules | undefined): boolean {
  return rules === undefined || (rules.fields.length === 0 && rules.patterns.length === 0);
}

/** Effective values, for people. */
export function redactLines(
  rules: RedactRules | undefined,
  block: JsonValue | undefined,
): readonly { readonly key: string; readonly value: string; readonly declared: boolean }[] {
  const { tokens = true, fields = [], patterns = [] } = rules ?? {};
  return Object.entries({ tokens, fields, patterns }).flatMap(([key, value]) => {
    const declared = get(block, key) !== undefined;
    const says = declared || (Array.isArray(value) ? value.length > 0 : value === false);
    return says ? [{ key: `result.redact.${key}`, value: stringifyJson(value), declared }] : [];
  });
}

function get(block: JsonValue | undefined, key: string): JsonValue | undefined {
  return block !== undefined && isJsonObject(block) ? ownValue(block, key) : undefined;
}

function texts(list: JsonValue | undefined): readonly string[] {
  return list !== undefined && isJsonArray(list) ? list.filter((item) => typeof item === "string") : [];
}
