import { DURATION_SCHEMA, parseDuration } from "../core/durations.ts";
import { FAULT_OUTCOMES, type FaultRule } from "../core/fault.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import { ownList, ownText } from "./own-values.ts";
import { parseSize, SIZE_SCHEMA } from "./sizes.ts";

/** What a faulty upstream does to the attempts of some tools. */
export const FAULT_RULE_SCHEMA: JsonObject = {
  type: "object",
  required: ["tools"],
  additionalProperties: false,
  properties: {
    tools: {
      type: "array",
      minItems: 1,
      items: { type: "string", minLength: 1 },
      description: "Globs over names of tools.",
      examples: [["order_*"]],
    },
    share: {
      type: "number",
      exclusiveMinimum: 0,
      maximum: 1,
      default: 1,
      description: "Share of attempts that have the fault.",
    },
    latency: { ...DURATION_SCHEMA, description: "Wait before the upstream is called." },
    outcome: {
      enum: FAULT_OUTCOMES,
      description:
        "What the attempt ends with: `unreachable`, `timeout`, `unavailable` (HTTP 503) and `rate_limited` (HTTP 429) without calling the upstream, `answer_lost` after it.",
    },
    cut_after: { ...SIZE_SCHEMA, description: "Lose the answer after so much of its text." },
  },
};

/** Reads `faults.rules`: the schema has seen to it that each is whole. */
export function faultRules(rules: JsonValue | undefined): readonly FaultRule[] {
  const list: readonly JsonValue[] = isJsonArray(rules) ? rules : [];
  return list.filter(isJsonObject).map((rule) => {
    const { share } = rule;
    return {
      tools: (ownList(rule, "tools") ?? []).filter((tool) => typeof tool === "string"),
      share: typeof share === "number" ? share : 1,
      latencyMs: parseDuration(ownText(rule, "latency")) ?? 0,
      outcome: FAULT_OUTCOMES.find((outcome) => outcome === ownValue(rule, "outcome")),
      cutAfterBytes: parseSize(ownValue(rule, "cut_after")),
    };
  });
}
