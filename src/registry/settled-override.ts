import { ACCESS_SETTINGS } from "../config/access-settings.ts";
import { ownObject } from "../config/own-values.ts";
import { settingKeys } from "../config/read-settings.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import type { Delivery } from "../core/tool.ts";
import type { ParsedResultRules } from "../shaping/result-rules.ts";
import { toolsetIssues } from "./access.ts";
import type { DeclarationDefaults } from "./declaration.ts";
import { resultIssues } from "./declaration-parts.ts";
import { type ResolvedPolicies, resolvePolicies } from "./policies.ts";
import { resolveResult } from "./standards.ts";
import { type ResolvedTimeouts, resolveTimeouts } from "./timeouts.ts";

/** Mappings deeper than this are values: they replace each other as a whole. `params` has names and then keys. */
const MERGE_DEPTH = 3;

/** Keys that count for a server's tools where no override says otherwise. */
const INHERITED_NOT = new Set(["name", "title", "description", "tools", "trust_hints"]);

/** What is in force for the tools of a server that the same overrides concern. */
export interface SettledOverride {
  /** The declaration's keys with the overrides' over them. */
  readonly keys: JsonObject;
  readonly delivery: Delivery;
  readonly result: ParsedResultRules;
  readonly timeouts: ResolvedTimeouts;
  readonly policies: ResolvedPolicies;
  /** Whether an override says who may see and call the tool. */
  readonly ownAccess: boolean;
  /** Pointers are into `keys`. */
  readonly issues: readonly ConfigIssue[];
  readonly notes: readonly ConfigIssue[];
}

/** Settles what a server's declaration and overrides, the most specific last, say together. */
export function settleOverrides(
  declared: JsonObject,
  overrides: readonly JsonObject[],
  defaults: DeclarationDefaults,
): SettledOverride {
  const inherited = Object.fromEntries(Object.entries(declared).filter(([key]) => !INHERITED_NOT.has(key)));
  const keys = overrides.reduce<JsonObject>(
    (under, over) => merge(withoutAccess(under, over), over, MERGE_DEPTH),
    inherited,
  );
  const delivery = ownValue(keys, "delivery") === "incremental" ? "incremental" : "conclusive";
  const result = resolveResult(ownObject(keys, "result"), { delivery, kind: "mcp" }, defaults);
  const timeouts = resolveTimeouts(ownObject(keys, "timeout") ?? {}, { delivery, kind: "mcp" }, defaults);
  const policies = resolvePolicies(keys, defaults);
  return {
    keys,
    delivery,
    result,
    timeouts,
    policies,
    ownAccess: overrides.some(saysAccess),
    issues: [
      ...resultIssues(result, { delivery }),
      ...timeouts.issues,
      ...policies.issues,
      ...toolsetIssues(keys, defaults),
    ],
    notes: [...timeouts.notes, ...policies.notes],
  };
}

/** Roles and subjects are one rule: one that names its subjects must not be widened by roles that a wider one names. */
function withoutAccess(under: JsonObject, over: JsonObject): JsonObject {
  if (!saysAccess(over)) return under;
  const names = settingKeys(ACCESS_SETTINGS);
  return Object.fromEntries(Object.entries(under).filter(([key]) => !names.some((name) => name === key)));
}

function saysAccess(keys: JsonObject): boolean {
  return settingKeys(ACCESS_SETTINGS).some((name) => ownValue(keys, name) !== undefined);
}

function merge(under: JsonObject, over: JsonObject, depth: number): JsonObject {
  const merged = new Map<string, JsonValue>(Object.entries(under));
  for (const [key, value] of Object.entries(over)) {
    const before = merged.get(key);
    const deeper = depth > 1 && isJsonObject(before) && isJsonObject(value);
    merged.set(key, deeper ? merge(before, value, depth - 1) : value);
  }
  return Object.fromEntries(merged);
}
