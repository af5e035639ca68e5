import type { ConfigIssue } from "../core/adapter.ts";
import { isJsonArray, type JsonValue, jsonPointer } from "../core/json.ts";
import {
  patternProblem,
  REDACT_FIELDS_SCHEMA,
  REDACT_PATTERNS_SCHEMA,
  REDACT_TOKENS_SCHEMA,
} from "../core/redact-schema.ts";
import { HIDDEN_CHARACTERS, type RedactRules, type ResultRules, TRUNCATIONS, type Trust } from "../core/shaper.ts";
import type { Setting } from "./setting.ts";

/** How far content of tools can be trusted that do not say it: to vouch for all of them nobody can. */
const TRUSTS = ["none", "wrapped"] as const satisfies readonly Trust[];

/** How results are shaped where a declaration is silent, by dotted key. */
export const RESULT_SETTINGS = {
  "defaults.result.max_length": {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 1_000_000,
      description: "For tools that do not set `result.max_length`, in characters; built in: 700000.",
    },
  },
  "defaults.result.truncation": {
    schema: {
      enum: TRUNCATIONS,
      description:
        "What is kept of a result that is too long, for conclusive tools that do not set `result.truncation`; built in: head.",
    },
  },
  "defaults.result.hidden_characters": {
    schema: {
      enum: HIDDEN_CHARACTERS,
      description:
        "Whether characters that are not seen are shown by their number, for tools that do not set `result.hidden_characters`; built in: show.",
    },
  },
  "defaults.result.trust": {
    schema: {
      enum: TRUSTS,
      description:
        "Whether content may be taken for more than data, for tools that do not set `result.trust`; `full` is for a declaration alone to say. Built in: none.",
    },
  },
  "defaults.result.redact.tokens": {
    schema: { ...REDACT_TOKENS_SCHEMA, description: `${REDACT_TOKENS_SCHEMA.description} Built in: true.` },
  },
  "defaults.result.redact.fields": {
    schema: {
      ...REDACT_FIELDS_SCHEMA,
      description: `${REDACT_FIELDS_SCHEMA.description} They hold for all tools, beside a tool's own.`,
    },
  },
  "defaults.result.redact.patterns": {
    schema: {
      ...REDACT_PATTERNS_SCHEMA,
      description: `${REDACT_PATTERNS_SCHEMA.description} They hold for all tools, beside a tool's own, and in errors, listings and the log too.`,
    },
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** How results are shaped where a declaration is silent; what the file does not set is absent. */
export interface ResultDefaults {
  readonly maxLength?: number;
  readonly truncation?: ResultRules["truncation"];
  readonly hiddenCharacters?: (typeof HIDDEN_CHARACTERS)[number];
  readonly trust?: Trust;
  readonly redact?: RedactRules;
}

type Values = ReadonlyMap<string, JsonValue>;

/** Reads the settings of results. */
export function readResultDefaults(values: Values): ResultDefaults {
  const get = (key: keyof typeof RESULT_SETTINGS): JsonValue | undefined => values.get(key);
  const length = get("defaults.result.max_length");
  const truncation = TRUNCATIONS.find((mode) => mode === get("defaults.result.truncation"));
  const hiddenCharacters = HIDDEN_CHARACTERS.find((word) => word === get("defaults.result.hidden_characters"));
  const trust = TRUSTS.find((word) => word === get("defaults.result.trust"));
  const redact = {
    tokens: get("defaults.result.redact.tokens"),
    fields: get("defaults.result.redact.fields"),
    patterns: get("defaults.result.redact.patterns"),
  };
  const redacts = Object.values(redact).some((value) => value !== undefined);
  return {
    ...(length === undefined ? {} : { maxLength: Number(length) }),
    ...(truncation === undefined ? {} : { truncation }),
    ...(hiddenCharacters === undefined ? {} : { hiddenCharacters }),
    ...(trust === undefined ? {} : { trust }),
    ...(redacts
      ? { redact: { tokens: redact.tokens !== false, fields: texts(redact.fields), patterns: texts(redact.patterns) } }
      : {}),
  };
}

/** Patterns that cannot be used. */
export function resultIssues(values: Values): readonly ConfigIssue[] {
  return texts(values.get("defaults.result.redact.patterns")).flatMap((pattern, i): ConfigIssue[] => {
    const problem = patternProblem(pattern);
    const pointer = jsonPointer(["defaults", "result", "redact", "patterns", String(i)]);
    return problem === undefined ? [] : [{ pointer, message: `\`defaults.result.redact.patterns\`: ${problem}` }];
  });
}

function texts(list: JsonValue | undefined): readonly string[] {
  return list !== undefined && isJsonArray(list) ? list.filter((item) => typeof item === "string") : [];
}
