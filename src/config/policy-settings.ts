import type { JsonObject } from "../core/json.ts";
import { isJsonObject } from "../core/json.ts";
import { type Setting, settingsSchema } from "./setting.ts";

/**
 * Policies of a tool, by dotted key. Each may stand in a declaration, in a group and under `defaults` of gateway.yaml,
 * and the first of them that says something counts, key by key; `standard` is what is built in.
 */
export const POLICY_SETTINGS = {
  concurrency_limit: {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 100_000,
      description: "Most calls of the tool at a time; more wait in line.",
      examples: [10],
    },
  },
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
} as const satisfies Readonly<Record<string, Setting>>;

/** What a policy with keys below it is for. */
export const POLICY_SECTIONS: Readonly<Record<string, string>> = {};

/** Dotted key of a policy. */
export type PolicyKey = keyof typeof POLICY_SETTINGS;

/** Dotted key of what a group shares. */
export type GroupKey = keyof typeof GROUP_SETTINGS;

/** JSON Schema of the top-level keys that the policies have in a declaration, by key. */
export function policySchemas(): ReadonlyMap<string, JsonObject> {
  const { properties } = settingsSchema(POLICY_SETTINGS, "", { sections: POLICY_SECTIONS, defaults: false });
  return new Map(Object.entries(properties).flatMap(([key, schema]) => (isJsonObject(schema) ? [[key, schema]] : [])));
}
