import type { ConfigIssue } from "../core/adapter.ts";
import { type JsonObject, type JsonValue, ownValue, stringifyJson } from "../core/json.ts";
import {
  type FieldRules,
  HIDDEN_CHARACTERS,
  type RedactRules,
  type ResultFormat,
  type ResultRules,
  TRUNCATIONS,
} from "../core/shaper.ts";
import type { Delivery, ToolKind } from "../core/tool.ts";
import { EARLY_STOP_SCHEMA, earlyStopIssues, readEarlyStop } from "./early-stop-rules.ts";
import { parseFieldPath } from "./field-path.ts";
import { REDACT_SCHEMA, readRedact, redactIssues, redactLines } from "./redact-rules.ts";
import { parseResultTemplate } from "./result-template.ts";
import { parseSelect } from "./select/parse-select.ts";

/** Limit of a conclusive result where neither the declaration nor gateway.yaml sets one, in code points. */
const DEFAULT_MAX_LENGTH = 700_000;

/** Highest limit of a conclusive result, in code points: it must fit into one message of 4 MiB. */
const HIGHEST_MAX_LENGTH = 1_000_000;

const PATH = "Dotted path, such as `data.items[0].id`; list indexes count from 0.";

function notSupported(description: string): JsonObject {
  return { not: {}, "x-not-supported": true, description };
}

function names(description: string): JsonObject {
  return {
    type: "array",
    minItems: 1,
    maxItems: 200,
    items: { type: "string", minLength: 1, maxLength: 500 },
    description,
  };
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
    select: {
      type: "string",
      minLength: 1,
      maxLength: 1000,
      description:
        "Expression of JMESPath that picks the result from what `data_field` names, such as `items[?state=='open'].id`. What it does not find is null.",
    },
    max_length: {
      type: "integer",
      minimum: 1,
      maximum: 1_000_000_000,
      description:
        "Most characters (Unicode code points) of the result's text, the mark that says it was cut included. Default 700,000 for conclusive tools, which take at most 1,000,000; none for incremental ones, where it limits the whole stream.",
    },
    truncation: {
      enum: TRUNCATIONS,
      default: "head",
      description:
        "What is kept of a longer result: its beginning, its end, both, or what says most of it (`summary`); `error`: it is a failure. Incremental tools take `head` and `error`.",
    },
    loose: {
      type: "boolean",
      default: false,
      description:
        'Compare `success_value` as text, upper and lower case alike: then `0` is `"0"`, and `true` is `"True"`.',
    },
    error_field: {
      type: "string",
      minLength: 1,
      maxLength: 500,
      description: `Field of a JSON answer with the upstream's words about what went wrong, for the failure's message. ${PATH} Without \`success_field\` an answer that holds something there is a failure.`,
    },
    fields: {
      type: "object",
      description: "Which fields of the result are given. Names are dotted; a list is gone through, item by item.",
      additionalProperties: false,
      minProperties: 1,
      properties: {
        keep: names("Fields to keep, with all they hold; all others are left out."),
        drop: names("Fields to leave out."),
        rename: {
          type: "object",
          maxProperties: 100,
          additionalProperties: { type: "string", minLength: 1, maxLength: 200 },
          description: "New names by old ones; the old one is dotted, the new one a name.",
        },
      },
    },
    template: {
      type: "string",
      minLength: 1,
      maxLength: 10_000,
      description:
        "Text that is the result, such as `{id}: {state}`; `{path}` stands for a field, `{{` and `}}` for braces. Of a list a line an item.",
    },
    max_tokens: {
      type: "integer",
      minimum: 1,
      maximum: 1_000_000_000,
      description:
        "Most tokens of the result's text by an estimate: three ASCII characters count as one, every other character as one of its own. Beside `max_length`, the lower counts.",
    },
    handle: {
      type: "boolean",
      default: true,
      description:
        "Whether the whole of a result that is too long is kept for reading on, where gateway.yaml says `results.keep`; not for incremental tools.",
    },
    redact: REDACT_SCHEMA,
    early_stop: EARLY_STOP_SCHEMA,
    hidden_characters: {
      enum: HIDDEN_CHARACTERS,
      default: "show",
      description:
        "Whether characters that are not seen or turn text around (tag characters, direction overrides, characters without width where they deceive) are shown as `<U+202E>`, or kept as they are.",
    },
    trust: {
      enum: ["none", "wrapped", "full"],
      default: "none",
      description:
        "Whether what the tool gives may be taken for more than data. A result says it (`provenance.trusted`); `wrapped`: not, and its texts stand between two lines that content cannot forge; `full`: the declaration vouches for it.",
    },
    omit: notSupported("Fields to leave out."),
  },
};

/** What the rules of a tool depend on besides its `result:` block. */
export interface ResultRulesContext {
  readonly delivery: Delivery;
  /** Absent: one whose tools can give their output in pieces. */
  readonly kind?: ToolKind;
  /** What gateway.yaml's defaults say under `result`; what it does not, is built in. */
  readonly defaults?: ResultDefaultRules;
}

/** Rules for tools whose `result:` block does not say. */
export interface ResultDefaultRules {
  readonly maxLength?: number | undefined;
  /** For conclusive tools. */
  readonly truncation?: ResultRules["truncation"] | undefined;
  readonly redact?: RedactRules | undefined;
  readonly hiddenCharacters?: ResultRules["hiddenCharacters"];
  readonly trust?: ResultRules["trust"];
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
  const { defaults = {} } = context;
  const builtIn = context.delivery === "incremental" ? Number.POSITIVE_INFINITY : DEFAULT_MAX_LENGTH;
  const rules: ResultRules = {
    format: (get("format") ?? "auto") as ResultFormat,
    successField: get("success_field") as string | undefined,
    successValue: get("success_value") ?? null,
    dataField: get("data_field") as string | undefined,
    maxLength: Number(get("max_length") ?? defaults.maxLength ?? builtIn),
    truncation: (get("truncation") ??
      (context.delivery === "incremental" ? undefined : defaults.truncation) ??
      "head") as ResultRules["truncation"],
    loose: get("loose") as boolean | undefined,
    errorField: get("error_field") as string | undefined,
    select: get("select") as string | undefined,
    fields: get("fields") as FieldRules | undefined,
    template: get("template") as string | undefined,
    maxTokens: get("max_tokens") as number | undefined,
    handle: get("handle") as boolean | undefined,
    redact: readRedact(get("redact"), defaults.redact),
    hiddenCharacters: (get("hidden_characters") ?? defaults.hiddenCharacters) as ResultRules["hiddenCharacters"],
    earlyStop: readEarlyStop(get("early_stop")),
    trust: (get("trust") ?? defaults.trust) as ResultRules["trust"],
  };
  const issues = [
    ...issuesOf(rules, get, context.delivery),
    ...redactIssues(get("redact"), rules, context.delivery),
    ...earlyStopIssues(rules.earlyStop, context),
  ];
  return { rules, issues, explain: () => explain(rules, get) };
}

type Get = (key: string) => JsonValue | undefined;

function issuesOf(rules: ResultRules, get: Get, delivery: Delivery): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const add = (key: string, message: string): void => void issues.push({ pointer: `/${key}`, message });
  for (const key of ["success_field", "data_field", "error_field"]) {
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
  if (rules.loose !== undefined && rules.successField === undefined) {
    add("loose", "`loose` has no effect without `success_field`");
  }
  issues.push(...payloadIssues(rules), ...lengthIssues(rules, get, delivery));
  return issues;
}

function payloadIssues({ format, select, fields, template }: ResultRules): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const parsed = select === undefined ? undefined : parseSelect(select);
  if (parsed?.ok === false) {
    const message = `\`select\` has ${parsed.problem}: write what https://jmespath.org/specification.html has, such as items[?state=='open'].id`;
    issues.push({ pointer: "/select", message });
  }
  if (template !== undefined && parseResultTemplate(template) === undefined) {
    const message =
      "`template` has a brace that holds no path: write {id} or {items[0].id} for a field, and {{ or }} for a brace";
    issues.push({ pointer: "/template", message });
  }
  for (const [key, value] of Object.entries({ select, fields, template })) {
    if (value === undefined || format !== "text") continue;
    issues.push({ pointer: `/${key}`, message: `\`${key}\` looks into JSON: remove it, or \`format: text\`` });
  }
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
    ...redactLines(rules.redact, get("redact")),
    ...["loose", "error_field", "select", "fields", "template", "max_tokens", "handle", "early_stop"].flatMap((key) => {
      const value = get(key);
      return value === undefined ? [] : [line(key, typeof value === "string" ? value : stringifyJson(value))];
    }),
    ...(rules.hiddenCharacters === undefined ? [] : [line("hidden_characters", rules.hiddenCharacters)]),
    ...(rules.trust === undefined ? [] : [line("trust", rules.trust)]),
  ];
}

/** Whether the rules look into JSON. */
export function looksInside({ successField, dataField, errorField, select, fields, template }: ResultRules): boolean {
  return [successField, dataField, errorField, select, fields, template].some((rule) => rule !== undefined);
}
