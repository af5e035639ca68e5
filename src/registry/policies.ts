import { parseDuration } from "../config/durations.ts";
import { type GroupKey, POLICY_SETTINGS, type PolicyKey, policySchemas } from "../config/policy-settings.ts";
import { readSettings, settingKeys } from "../config/read-settings.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { jsonPointer, ownValue } from "../core/json.ts";
import { didYouMean } from "../core/nearest.ts";
import type {
  CircuitBreakerPolicy,
  EffectClass,
  GroupPolicy,
  HedgePolicy,
  RetryPolicy,
  ToolPolicy,
} from "../core/step.ts";
import type { DeclaredTool } from "../core/tool.ts";
import type { DeclarationDefaults } from "./declaration.ts";

/** Where a policy's value came from, most specific first. */
export type PolicyLevel = "declaration" | "group" | "defaults" | "built-in";

/** One policy of a tool as it is in force. */
export interface ResolvedPolicy {
  readonly value: JsonValue;
  readonly level: PolicyLevel;
}

/** All policies of a tool. */
export interface ResolvedPolicies {
  /** Name of the group the tool is in. */
  readonly group: string | undefined;
  /** By dotted key; what is set on no level is absent. */
  readonly resolved: ReadonlyMap<PolicyKey, ResolvedPolicy>;
  readonly policy: Pick<ToolPolicy, "group" | "retry" | "hedge" | "circuitBreaker" | "concurrencyLimit">;
  /** All that has an effect, for the digest of a declaration. */
  readonly facts: JsonObject;
  readonly issues: readonly ConfigIssue[];
}

type Resolved = ResolvedPolicies["resolved"];

/** What gateway.yaml sets of a group, by dotted key. */
type GroupValues = ReadonlyMap<PolicyKey | GroupKey, JsonValue>;

/** Top-level keys that policies have in a declaration. */
const POLICY_ROOTS: readonly string[] = [...policySchemas().keys()];

/** Settles a tool's policies: the declaration's, else its group's, else the gateway's defaults, else the built-in ones. */
export function resolvePolicies(keys: JsonObject, defaults: DeclarationDefaults): ResolvedPolicies {
  const { group, shared, issues } = groupOf(keys, defaults);
  const declared = readDeclared(keys);
  for (const [key, problem] of declared.problems) {
    issues.push({ pointer: jsonPointer(key.split(".")), message: `\`${key}\`: ${problem}` });
  }
  const levels: readonly (readonly [level: PolicyLevel, values: ReadonlyMap<string, JsonValue> | undefined])[] = [
    ["declaration", declared.values],
    ["group", shared],
    ["defaults", defaults.policies],
    ["built-in", BUILT_IN],
  ];
  const resolved = new Map<PolicyKey, ResolvedPolicy>();
  for (const key of settingKeys(POLICY_SETTINGS)) {
    for (const [level, values] of levels) {
      const value = values?.get(key);
      if (value === undefined) continue;
      resolved.set(key, { value, level });
      break;
    }
  }
  return {
    group,
    resolved,
    policy: {
      group: groupPolicy(group, shared),
      retry: retryPolicy(resolved),
      hedge: hedgePolicy(resolved),
      circuitBreaker: circuitBreakerPolicy(resolved),
      concurrencyLimit: number(resolved, "concurrency_limit"),
    },
    facts: {
      group: group ?? null,
      shared: Object.fromEntries(shared ?? []),
      own: Object.fromEntries([...resolved].map(([key, { value }]) => [key, value])),
    },
    issues,
  };
}

function groupOf(
  keys: JsonObject,
  { groups }: DeclarationDefaults,
): Pick<ResolvedPolicies, "group"> & { readonly shared: GroupValues | undefined; readonly issues: ConfigIssue[] } {
  const group = ownValue(keys, "group");
  if (typeof group !== "string") return { group: undefined, shared: undefined, issues: [] };
  const shared = groups?.get(group);
  return { group, shared, issues: shared === undefined ? [unknownGroup(group, groups?.keys() ?? [])] : [] };
}

function groupPolicy(name: string | undefined, shared: GroupValues | undefined): GroupPolicy | undefined {
  if (name === undefined) return undefined;
  const parallel = shared?.get("max_parallel_calls");
  return { name, maxParallelCalls: typeof parallel === "number" ? parallel : undefined };
}

function retryPolicy(resolved: Resolved): RetryPolicy {
  const backoff = resolved.get("retry.backoff")?.value;
  return {
    maxRetries: number(resolved, "retry.max_retries") ?? 0,
    backoff: backoff === "linear" || backoff === "fixed" ? backoff : "exponential",
    initialBackoffMs: number(resolved, "retry.initial_backoff") ?? 0,
    maxBackoffMs: number(resolved, "retry.max_backoff") ?? 0,
    budget: number(resolved, "retry.budget") ?? 0,
  };
}

function hedgePolicy(resolved: Resolved): HedgePolicy | undefined {
  const after = resolved.get("hedge.after")?.value;
  if (typeof after !== "string") return undefined;
  const max = number(resolved, "hedge.max") ?? 1;
  const ms = parseDuration(after);
  return { after: ms === undefined ? { percentile: Number(after.slice(1)) } : { ms }, max };
}

/** What is wrong with hedges that a declaration asks for itself; from elsewhere they apply to the tools they fit. */
export function hedgeIssues(
  { resolved }: ResolvedPolicies,
  effectClass: EffectClass,
  { delivery }: DeclaredTool,
): readonly ConfigIssue[] {
  if (resolved.get("hedge.after")?.level !== "declaration") return [];
  if (effectClass === "read" && delivery === "conclusive") return [];
  const why = effectClass === "read" ? "gives its output in pieces" : "may change something";
  const message = `\`hedge\` runs a call twice, and this tool ${why}: remove it${effectClass === "read" ? "" : ", or say `hints: {read_only: true}` if the tool only reads"}`;
  return [{ pointer: "/hedge", message }];
}

function circuitBreakerPolicy(resolved: Resolved): CircuitBreakerPolicy | undefined {
  const failureThreshold = number(resolved, "circuit_breaker.failure_threshold");
  const resetTimeoutMs = number(resolved, "circuit_breaker.reset_timeout");
  const enabled = resolved.get("circuit_breaker.enabled")?.value === true;
  if (!enabled || failureThreshold === undefined || resetTimeoutMs === undefined) return undefined;
  const scope = resolved.get("circuit_breaker.scope")?.value === "upstream" ? "upstream" : "tool";
  return { failureThreshold, resetTimeoutMs, scope };
}

function number(resolved: Resolved, key: PolicyKey): number | undefined {
  const value = resolved.get(key)?.value;
  return typeof value === "number" ? value : undefined;
}

const NOTHING = readSettings<PolicyKey>(POLICY_SETTINGS, {}, { fill: false });
const BUILT_IN = readSettings<PolicyKey>(POLICY_SETTINGS, {}, { fill: true }).values;

/** Most declarations set none, and thousands are read at a start. */
function readDeclared(keys: JsonObject): typeof NOTHING {
  if (POLICY_ROOTS.every((root) => ownValue(keys, root) === undefined)) return NOTHING;
  return readSettings<PolicyKey>(POLICY_SETTINGS, keys, { fill: false });
}

function unknownGroup(group: string, groups: Iterable<string>): ConfigIssue {
  const near = didYouMean(group, groups);
  const mend = near === "" ? "add it under `groups` there, or leave `group` out" : near;
  return { pointer: "/group", message: `\`group\`: gateway.yaml has no group "${group}"; ${mend}` };
}
