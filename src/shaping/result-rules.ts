import type { ConfigIssue } from "../core/adapter.ts";
import { type JsonObject, type JsonValue, ownValue, stringifyJson } from "../core/json.ts";
import type { ResultFormat, ResultRules } from "../core/shaper.ts";
import type { Delivery } from "../core/tool.ts";
import { parseFieldPath } from "./field-path.ts";

/** Limit of a conclusive result where neither the declaration nor gateway.yaml sets one, in code points. */
const DEFAULT_MAX_LENGTH = 700_000;

/** Highest limit of a conclusive result, in code points: it must fit into one message of 4 MiB. */
const HIGHEST_MAX_LENGTH = 1_000_000;

const PATH = "Dotted path, such as `data.items[0].id`; list indexes count from 0.";

function notSupported(description: string): JsonObject {
  return { not: {}, "x-not-supported": true, description };
}

/** JSON Schema of the `result:` block of a declaration. */
export const RESULT_SCHEMA: JsonObject = {
  type: "object",
  description: "How the upstream's answer becomes the result a model reads.",
  additionalProperties: false,
  properties: {
    format: {
      enum: ["auto", "json", "text"],
      default: "auto",
      description: "What the answer is read as. `auto`: JSON where the answer says that it is, else text.",
    },
    success_field: {
      type: "string",
      minLength: 1,
      maxLength: 500,
      description: `Field of a JSON answer that tells whether the tool succeeded. ${PATH} Without it the upstream's status alone decides.`,
    },
    success_value: {
      type: ["string", "number", "boolean", "null"],
      description: 'What `success_field` must equal, by JSON equality: `0` is not `"0"`.',
    },
    data_field: {
      type: "string",
      minLength: 1,
      maxLength: 500,
      description: `Field of a JSON answer that is the result; the rest is left out. ${PATH}`,
    },
    max_length: {
      type: "integer",
      minimum: 1,
      maximum: 1_000_000_000,
      description:
        "Most characters (Unicode code points) of the result's text, the mark that says it was cut included. Default 700,000 for conclusive tools, which take at most 1,000,000; none for incremental ones, where it limits the whole stream.",
    },
    truncation: {
      enum: ["head", "tail", "head_tail", "error", "summary"],
      default: "head",
      description:
        "What is kept of a longer result: its beginning, its end, both, or what says most of it (`summary`); `error`: it is a failure. Incremental tools take `head` and `error`.",
    },
    error_field: notSupported("Field of the answer with the text of an error."),
    fields: notSupported("Fields to keep."),
    omit: notSupported("Fields to leave out."),
    select: notSupported("Expression that picks the result."),
    max_tokens: notSupported("Most tokens of the result."),
    loose: notSupported("Compare `success_value` regardless of type."),
    template: notSupported("Text template for the result."),
    handle: notSupported("Keep the whole result for later reading."),
  },
};

/** What the rules of a tool depend on besides its `result:` block. */
export interface ResultRulesContext {
  readonly delivery: Delivery;
  /** `result.max_length` of gateway.yaml's defaults; absent: the built-in one, which is none for incremental tools. */
  readonly defaultMaxLength?: number | undefined;
}

/** Rules of a tool with where they come from. */
export interface ParsedResultRules {
  readonly rules: ResultRules;
  /** Pointers are relative to the block. */
  readonly issues: readonly ConfigIssue[];
  /** Effective values, for people; `declared`: the block sets it. */
  explain(): readonly { readonly key: string; readonly value: string; readonly declared: boolean }[];
}

/** Parses a `result:` block that is valid by {@link RESULT_SCHEMA}; `undefined`: the declaration has none. */
export function parseResultRules(block: JsonObject | undefined, context: ResultRulesContext): ParsedResultRules {
  const get = (key: string): JsonValue | undefined => (block === undefined ? undefined : ownValue(block, key));
  const builtIn = context.delivery === "incremental" ? Number.POSITIVE_INFINITY : DEFAULT_MAX_LENGTH;
  const rules: ResultRules = {
    format: (get("format") ?? "auto") as ResultFormat,
    successField: get("success_field") as string | undefined,
    successValue: get("success_value") ?? null,
    dataField: get("data_field") as string | undefined,
    maxLength: Number(get("max_length") ?? context.defaultMaxLength ?? builtIn),
    truncation: (get("truncation") ?? "head") as ResultRules["truncation"],
  };
  return { rules, issues: issuesOf(rules, get, context.delivery), explain: () => explain(rules, get) };
}

type Get = (key: string) => JsonValue | undefined;

function issuesOf(rules: ResultRules, get: Get, delivery: Delivery): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const add = (key: string, message: string): void => void issues.push({ pointer: `/${key}`, message });
  for (const key of ["success_field", "data_field"]) {
    const path = get(key);
    if (typeof path !== "string") continue;
    if (parseFieldPath(path) === undefined) {
      add(key, `\`${key}\` is no path: write names joined by dots and list indexes, such as data.items[0].id`);
    }
    if (rules.format === "text") add(key, `\`${key}\` looks into JSON: remove it, or \`format: text\``);
  }
  const hasValue = get("success_value") !== undefined;
  if (rules.successField !== undefined && !hasValue) {
    add("success_field", "`success_field` needs `success_value`, the value that means success, such as 0 or true");
  }
  if (rules.successField === undefined && hasValue) {
    add("success_value", "`success_value` has no effect without `success_field`");
  }
  issues.push(...lengthIssues(rules, get, delivery));
  return issues;
}

function lengthIssues({ maxLength, truncation }: ResultRules, get: Get, delivery: Delivery): ConfigIssue[] {
  if (delivery === "incremental" && truncation !== "head" && truncation !== "error") {
    const message = `\`truncation: ${truncation}\` needs the whole result, which \`delivery: incremental\` gives away in pieces: use head or error`;
    return [{ pointer: "/truncation", message }];
  }
  if (delivery === "conclusive" && get("max_length") !== undefined && maxLength > HIGHEST_MAX_LENGTH) {
    return [
      {
        pointer: "/max_length",
        message: `\`max_length\` of a conclusive tool is at most ${HIGHEST_MAX_LENGTH}, got ${maxLength}`,
      },
    ];
  }
  return [];
}

function explain(rules: ResultRules, get: Get): ReturnType<ParsedResultRules["explain"]> {
  const line = (key: string, value: string) => ({ key: `result.${key}`, value, declared: get(key) !== undefined });
  return [
    line("format", rules.format),
    line("success_field", rules.successField ?? "none: the upstream's status decides"),
    ...(rules.successField === undefined ? [] : [line("success_value", stringifyJson(rules.successValue))]),
    line("data_field", rules.dataField ?? "none: the whole answer"),
    line("max_length", Number.isFinite(rules.maxLength) ? String(rules.maxLength) : "none"),
    line("truncation", rules.truncation),
  ];
}
