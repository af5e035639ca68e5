import type { ConfigIssue } from "../core/adapter.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import { patternProblem } from "../core/redact-schema.ts";
import type { EarlyStopRules } from "../core/shaper.ts";
import type { Delivery, ToolKind } from "../core/tool.ts";

/** JSON Schema of the `early_stop:` part of a `result:` block. */
export const EARLY_STOP_SCHEMA: JsonObject = {
  type: "object",
  description:
    "When a stream is enough: the first rule that holds ends the upstream's call, and the result says so. For `delivery: incremental`.",
  additionalProperties: false,
  minProperties: 1,
  properties: {
    match: {
      type: "string",
      minLength: 1,
      maxLength: 1_000,
      description:
        "Regular expression; the text ends with the first match. It runs in linear time, is looked for as the text comes, and spans at most 1,024 characters, so `^` and `$` have no place in it.",
    },
    max_length: { type: "integer", minimum: 1, maximum: 1_000_000_000, description: "After so many characters." },
    max_tokens: {
      type: "integer",
      minimum: 1,
      maximum: 1_000_000_000,
      description: "After so many tokens, estimated as for `result.max_tokens`.",
    },
  },
};

/** The rules of a block that is valid by {@link EARLY_STOP_SCHEMA}; `undefined`: there is none. */
export function readEarlyStop(block: JsonValue | undefined): EarlyStopRules | undefined {
  if (block === undefined || !isJsonObject(block)) return undefined;
  const match = ownValue(block, "match");
  const number = (key: string): number | undefined => {
    const value = ownValue(block, key);
    return value === undefined ? undefined : Number(value);
  };
  return {
    match: typeof match === "string" ? match : undefined,
    maxLength: number("max_length"),
    maxTokens: number("max_tokens"),
  };
}

/** What is wrong with the rules; pointers are relative to `result`. */
export function earlyStopIssues(
  rules: EarlyStopRules | undefined,
  { delivery, kind }: { readonly delivery: Delivery; readonly kind?: ToolKind },
): readonly ConfigIssue[] {
  if (rules === undefined) return [];
  if (kind === "mcp") {
    const message =
      "`early_stop` ends a stream, and a tool of an MCP server gives its result in one piece: remove it, and shorten the result by `max_length`";
    return [{ pointer: "/early_stop", message }];
  }
  const { match } = rules;
  const problem = match === undefined ? undefined : matchProblem(match);
  return [
    ...(delivery === "incremental"
      ? []
      : [{ pointer: "/early_stop", message: "`early_stop` ends a stream: it needs `delivery: incremental`" }]),
    ...(problem === undefined ? [] : [{ pointer: "/early_stop/match", message: `\`early_stop.match\`: ${problem}` }]),
  ];
}

function matchProblem(match: string): string | undefined {
  if (/^\^|(?:^|[^\\])\$$/.test(match))
    return "the text is looked at as it comes, so it has no `^` and `$`; leave them out";
  return patternProblem(match);
}
