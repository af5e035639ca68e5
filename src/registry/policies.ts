import {
  GROUP_SETTINGS,
  type GroupKey,
  POLICY_SETTINGS,
  type PolicyKey,
  policySchemas,
} from "../config/policy-settings.ts";
import { NO_REQUESTS, readRateLimit } from "../config/rate-limit.ts";
import { readSettings, settingKeys } from "../config/read-settings.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import { parseDuration } from "../core/durations.ts";
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
  /** By dotted key; what is set on no level is absent, and so is a built-in value that nothing depends on. */
  readonly resolved: ReadonlyMap<string, ResolvedPolicy>;
  /** What the group shares, by dotted key. */
  readonly shared: ReadonlyMap<string, ResolvedPolicy>;
  readonly policy: Pick<
    ToolPolicy,
    "group" | "retry" | "hedge" | "circuitBreaker" | "concurrencyLimit" | "adaptiveConcurrency" | "queue" | "rateLimit"
  >;
  /** All that has an effect, for the digest of a declaration. */
  readonly facts: JsonObject;
  readonly issues: readonly ConfigIssue[];
  /** What the declaration says without effect. */
  readonly notes: readonly ConfigIssue[];
}

type Resolved = ResolvedPolicies["resolved"];

/** What gateway.yaml sets of a group, by dotted key. */
type GroupValues = ReadonlyMap<string, JsonValue>;

/** What is wrong with `queue` where nothing is waited for. */
const NO_LIMIT =
  "has no effect: no limit of calls at a time is in force; set `concurrency_limit`, or join a group with `max_parallel_calls`";

/** Top-level keys that policies have in a declaration. */
const POLICY_ROOTS: readonly string[] = [...policySchemas().keys()];

/** Settles a tool's policies: the declaration's, else its group's, else the gateway's defaults, else the built-in ones. */
export function resolvePolicies(keys: JsonObject, defaults: DeclarationDefaults): ResolvedPolicies {
  const { group, shared, issues } = groupOf(keys, defaults);
  const declared = readDeclared(keys);
  for (const [key, problem] of declared.problems) {
    issues.push({ pointer: jsonPointer(key.split(".")), message: `\`${key}\`: ${problem}` });
  }
  const resolved = settle(settingKeys(POLICY_SETTINGS), [
    ["declaration", declared.values],
    ["group", shared],
    ["defaults", defaults.policies],
    ["built-in", BUILT_IN],
  ]);
  const ofGroup = settle(settingKeys(GROUP_SETTINGS), [
    ["group", shared],
    ["built-in", group === undefined ? undefined : BUILT_IN_SHARED],
  ]);
  const idleRate = settleRate(resolved, "rate_limit");
  settleRate(ofGroup, "shared_rate_limit");
  if (idleRate !== undefined) issues.push(issueAt(idleRate, NO_REQUESTS));
  const policy = policyOf(group, resolved, ofGroup);
  const idleQueue = hasTurns(policy) ? undefined : dropBuiltIn(resolved, "queue.");
  const notes = idleQueue === undefined ? [] : [issueAt(idleQueue, NO_LIMIT)];
  return {
    group,
    resolved,
    shared: ofGroup,
    policy,
    notes,
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

/** For each key the value of the first level that has one. */
function settle(
  keys: readonly string[],
  levels: readonly (readonly [level: PolicyLevel, values: ReadonlyMap<string, JsonValue> | undefined])[],
): Map<string, ResolvedPolicy> {
  const resolved = new Map<string, ResolvedPolicy>();
  for (const key of keys) {
    for (const [level, values] of levels) {
      const value = values?.get(key);
      if (value === undefined) continue;
      resolved.set(key, { value, level });
      break;
    }
  }
  return resolved;
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

/**
 * Completes a rate limit, whose burst is all of it where nobody says otherwise. Where there is none, gives a key that
 * the declaration sets in vain.
 */
function settleRate(resolved: Map<string, ResolvedPolicy>, key: string): string | undefined {
  const requests = resolved.get(`${key}.requests`);
  if (requests === undefined) return dropBuiltIn(resolved, `${key}.`);
  const burst = resolved.get(`${key}.burst`);
  if (burst === undefined) resolved.set(`${key}.burst`, { value: requests.value, level: "built-in" });
  return undefined;
}

/** Drops what is built in below a key where nothing depends on it, and gives a key there that the declaration sets. */
function dropBuiltIn(resolved: Map<string, ResolvedPolicy>, prefix: string): string | undefined {
  const below = [...resolved].filter(([key]) => key.startsWith(prefix));
  for (const [key, { level }] of below) if (level === "built-in") resolved.delete(key);
  return below.find(([, { level }]) => level === "declaration")?.[0];
}

/** Whether calls may have to wait for their turn. */
function hasTurns({ concurrencyLimit, adaptiveConcurrency, group }: ResolvedPolicies["policy"]): boolean {
  return concurrencyLimit !== undefined || adaptiveConcurrency || group?.maxParallelCalls !== undefined;
}

function issueAt(key: string, message: string): ConfigIssue {
  return { pointer: jsonPointer(key.split(".")), message: `\`${key}\` ${message}` };
}

function policyOf(
  group: string | undefined,
  resolved: ReadonlyMap<string, ResolvedPolicy>,
  shared: ReadonlyMap<string, ResolvedPolicy>,
): ResolvedPolicies["policy"] {
  return {
    group: group === undefined ? undefined : groupPolicy(group, shared),
    retry: retryPolicy(resolved),
    hedge: hedgePolicy(resolved),
    circuitBreaker: circuitBreakerPolicy(resolved),
    concurrencyLimit: number(resolved, "concurrency_limit"),
    adaptiveConcurrency: resolved.get("concurrency.adaptive")?.value === true,
    queue: { maxLength: number(resolved, "queue.max_length") ?? 0, maxWaitMs: number(resolved, "queue.max_wait") ?? 0 },
    rateLimit: readRateLimit(valuesOf(resolved), "rate_limit"),
  };
}

function groupPolicy(name: string, shared: ReadonlyMap<string, ResolvedPolicy>): GroupPolicy {
  return {
    name,
    maxParallelCalls: number(shared, "max_parallel_calls"),
    rateLimit: readRateLimit(valuesOf(shared), "shared_rate_limit"),
  };
}

function number(resolved: ReadonlyMap<string, ResolvedPolicy>, key: PolicyKey | GroupKey): number | undefined {
  const value = resolved.get(key)?.value;
  return typeof value === "number" ? value : undefined;
}

function valuesOf(resolved: ReadonlyMap<string, ResolvedPolicy>): ReadonlyMap<string, JsonValue> {
  return new Map([...resolved].map(([key, { value }]) => [key, value]));
}

const NOTHING = readSettings<PolicyKey>(POLICY_SETTINGS, {}, { fill: false });
const BUILT_IN_SHARED = readSettings<GroupKey>(GROUP_SETTINGS, {}, { fill: true }).values;
const BUILT_IN = readSettings<PolicyKey>(POLICY_SETTINGS, {}, { fill: true }).values;

/** Whether a declaration sets a policy itself, apart from the group it is in. */
export function declaresPolicy(keys: JsonObject): boolean {
  return POLICY_ROOTS.some((root) => Object.hasOwn(keys, root));
}

function readDeclared(keys: JsonObject): typeof NOTHING {
  if (!declaresPolicy(keys)) return NOTHING;
  return readSettings<PolicyKey>(POLICY_SETTINGS, keys, { fill: false });
}

function unknownGroup(group: string, groups: Iterable<string>): ConfigIssue {
  const near = didYouMean(group, groups);
  const mend = near === "" ? "add it under `groups` there, or leave `group` out" : near;
  return { pointer: "/group", message: `\`group\`: gateway.yaml has no group "${group}"; ${mend}` };
}
