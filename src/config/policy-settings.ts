import { DURATION_SCHEMA } from "../core/durations.ts";
import type { JsonObject } from "../core/json.ts";
import { isJsonObject } from "../core/json.ts";
import { RATE_PER, rateBurst, rateRequests } from "./rate-limit.ts";
import { duration, type Setting, settingsSchema } from "./setting.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * Policies of a tool, by dotted key. Each may stand in a declaration, in a group and under `defaults` of gateway.yaml,
 * and the first of them that says something counts, key by key; `standard` is what is built in.
 */
export const POLICY_SETTINGS = {
  "retry.max_retries": {
    schema: {
      type: "integer",
      minimum: 0,
      maximum: 20,
      description: "Most attempts after the first, where a repetition is safe and may help; 0: none.",
    },
    standard: 0,
  },
  "retry.backoff": {
    schema: {
      enum: ["exponential", "linear", "fixed"],
      description:
        "How the wait grows from one retry to the next: doubled, by `initial_backoff` each time, or not at all. The first two wait a random part of it, `fixed` all of it.",
    },
    standard: "exponential",
  },
  "retry.initial_backoff": duration("1s", [1, HOUR], "Longest wait before the first retry."),
  "retry.max_backoff": duration(
    "30s",
    [1, HOUR],
    "Longest wait before any retry; where the upstream asks for a longer one, nothing is tried again.",
  ),
  "retry.budget": {
    schema: {
      type: "number",
      minimum: 0,
      maximum: 1,
      description:
        "Most retries and hedges, as a share of the calls to the upstream in the last 10 s; 10 in that time are always allowed.",
    },
    standard: 0.2,
  },
  "hedge.after": {
    schema: {
      type: "string",
      pattern: `^p[5-9]\\d$|${DURATION_SCHEMA.pattern}`,
      patternErrorMessage:
        "expected a duration with its unit, such as 200ms, or a percentile of the tool's last calls, p50 to p99",
      description:
        "When a second attempt is begun beside one that has not answered yet: after a time, or after what so many percent of the tool's last 128 calls took. For tools that only read and whose delivery is conclusive. Absent: never.",
      examples: ["200ms", "p90"],
    },
  },
  "hedge.max": {
    schema: { type: "integer", minimum: 1, maximum: 3, description: "Most attempts that run besides the first." },
    standard: 1,
  },
  "circuit_breaker.enabled": {
    schema: { type: "boolean", description: "Whether a tool whose upstream keeps failing is paused." },
    standard: true,
  },
  "circuit_breaker.failure_threshold": {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 1_000,
      description: "Faults of the upstream in a row after which no call is let through.",
    },
    standard: 5,
  },
  "circuit_breaker.reset_timeout": duration(
    "60s",
    [1, 24 * HOUR],
    "How long no call is let through; then one is, and shows whether the upstream works again.",
  ),
  "circuit_breaker.scope": {
    schema: {
      enum: ["tool", "upstream"],
      description: "Whose faults count: the tool's own, or those of all tools of its upstream with the same settings.",
    },
    standard: "tool",
  },
  concurrency_limit: {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 100_000,
      description: "Most calls of the tool at a time; more wait in line.",
      examples: [10],
    },
  },
  "concurrency.adaptive": {
    schema: {
      type: "boolean",
      description:
        "Whether the limit follows the upstream: lower as calls get slower or fail, up to `concurrency_limit` (1000 where that is not set) while they do not.",
    },
    standard: false,
  },
  "queue.max_length": {
    schema: {
      type: "integer",
      minimum: 0,
      maximum: 100_000,
      description: "Most calls that wait for a limit of calls at a time; a further one is refused. 0: none waits.",
    },
    standard: 1_000,
  },
  "queue.max_wait": duration("30s", [1, DAY], "Longest a call waits for its turn; then it is refused."),
  "rate_limit.requests": rateRequests("the tool"),
  "rate_limit.per": RATE_PER,
  "rate_limit.burst": rateBurst(),
} as const satisfies Readonly<Record<string, Setting>>;

/** What the tools of a group share, by dotted key under `groups.NAME` of gateway.yaml. */
export const GROUP_SETTINGS = {
  max_parallel_calls: {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 100_000,
      description: "Most calls of all tools of the group at a time; more wait in line.",
    },
  },
  "shared_rate_limit.requests": rateRequests("all tools of the group"),
  "shared_rate_limit.per": RATE_PER,
  "shared_rate_limit.burst": rateBurst(),
} as const satisfies Readonly<Record<string, Setting>>;

/** What a policy with keys below it is for. */
export const POLICY_SECTIONS: Readonly<Record<string, string>> = {
  circuit_breaker: "Leaves an upstream alone that keeps failing.",
  hedge: "Another attempt beside one that takes long; the first answer counts.",
  retry: "Repeated attempts, where they are safe: what surely did nothing, what only reads, what may run twice.",
  concurrency: "How many calls of the tool run at a time.",
  queue: "How calls wait where a limit of calls at a time is reached.",
  rate_limit: "Most calls of the tool in a time.",
};

/** The same for what a group shares. */
export const GROUP_SECTIONS: Readonly<Record<string, string>> = {
  shared_rate_limit: "Most calls of all tools of the group in a time.",
};

/** Dotted key of a policy. */
export type PolicyKey = keyof typeof POLICY_SETTINGS;

/** Dotted key of what a group shares. */
export type GroupKey = keyof typeof GROUP_SETTINGS;

/** JSON Schema of the top-level keys that the policies have in a declaration, by key. */
export function policySchemas(): ReadonlyMap<string, JsonObject> {
  const { properties } = settingsSchema(POLICY_SETTINGS, "", { sections: POLICY_SECTIONS, defaults: false });
  return new Map(Object.entries(properties).flatMap(([key, schema]) => (isJsonObject(schema) ? [[key, schema]] : [])));
}
