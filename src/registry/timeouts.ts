import { ownText } from "../config/own-values.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import { formatDuration, parseDuration } from "../core/durations.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolPolicy } from "../core/step.ts";
import type { DeclaredTool, Delivery, ToolKind } from "../core/tool.ts";
import type { DeclarationDefaults } from "./declaration.ts";

/** The time limits of a declaration. */
const TIMEOUT_KEYS = ["connect", "read", "idle", "total"] as const;

type TimeoutKey = (typeof TIMEOUT_KEYS)[number];

const MINUTE = 60_000;
const MAX_MS = 24 * 60 * MINUTE;

/** Where neither the declaration nor gateway.yaml says anything. Output that comes in pieces takes its time. */
const BUILT_IN: Readonly<Record<Delivery, Readonly<Record<TimeoutKey, number>>>> = {
  conclusive: { connect: 5_000, read: 30_000, idle: 30_000, total: MINUTE },
  incremental: { connect: 5_000, read: 30_000, idle: 5 * MINUTE, total: 10 * MINUTE },
};

/** How long a program takes to its first output says nothing: where nobody sets another limit, `total` alone counts. */
const ONLY_TOTAL: Readonly<Partial<Record<ToolKind, readonly TimeoutKey[]>>> = { script: ["read", "idle"] };

/** A time limit and where it came from. */
export interface ResolvedTimeout {
  readonly ms: number;
  /** Key of the declaration it came from (`timeout.read` also stands for `idle`), else `undefined`. */
  readonly declaredBy: string | undefined;
  /** Key of gateway.yaml it came from, else `undefined`. */
  readonly defaultedBy: string | undefined;
}

/** All time limits of a tool. */
export interface ResolvedTimeouts {
  readonly policy: Pick<ToolPolicy, "totalMs" | "timeouts">;
  readonly resolved: Readonly<Record<TimeoutKey, ResolvedTimeout>>;
  readonly issues: readonly ConfigIssue[];
  readonly notes: readonly ConfigIssue[];
}

/**
 * Settles the time limits: the declaration's, else those of gateway.yaml, else the built-in ones. `idle` follows a
 * `read` that the declaration sets.
 */
export function resolveTimeouts(
  declared: JsonObject,
  { delivery, kind }: Pick<DeclaredTool, "delivery" | "kind">,
  defaults: DeclarationDefaults,
): ResolvedTimeouts {
  const issues: ConfigIssue[] = [];
  const fromDefaults = {
    connect: defaults.connectMs,
    read: defaults.readMs,
    idle: defaults.idleMs,
    total: defaults.totalMs,
  };
  const own = (key: TimeoutKey): number | undefined => parseDuration(ownText(declared, key));
  const resolve = (key: TimeoutKey, ...sources: readonly TimeoutKey[]): ResolvedTimeout => {
    const source = sources.find((each) => own(each) !== undefined);
    const ms = source === undefined ? undefined : own(source);
    if (ms !== undefined) return { ms, declaredBy: `timeout.${source}`, defaultedBy: undefined };
    const preset = fromDefaults[key];
    if (preset !== undefined) return { ms: preset, declaredBy: undefined, defaultedBy: `defaults.timeout.${key}` };
    if (ONLY_TOTAL[kind]?.includes(key) === true) return resolve("total", "total");
    return { ms: BUILT_IN[delivery][key], declaredBy: undefined, defaultedBy: undefined };
  };
  for (const key of TIMEOUT_KEYS) {
    const ms = own(key);
    if (ms === undefined || (ms >= 1 && ms <= MAX_MS)) continue;
    issues.push({
      pointer: `/timeout/${key}`,
      message: `\`timeout.${key}\`: expected 1ms to ${formatDuration(MAX_MS)}, got ${formatDuration(ms)}`,
    });
  }
  const resolved = {
    connect: resolve("connect", "connect"),
    read: resolve("read", "read"),
    idle: resolve("idle", "idle", "read"),
    total: resolve("total", "total"),
  };
  const timeouts = { connectMs: resolved.connect.ms, readMs: resolved.read.ms, idleMs: resolved.idle.ms };
  return { policy: { totalMs: resolved.total.ms, timeouts }, resolved, issues, notes: overTotal(resolved) };
}

/** A limit that the declaration sets and that `total` ends before. */
function overTotal(resolved: Readonly<Record<TimeoutKey, ResolvedTimeout>>): ConfigIssue[] {
  const { total, ...attempt } = resolved;
  return Object.entries(attempt).flatMap(([key, { ms, declaredBy }]) => {
    if (declaredBy !== `timeout.${key}` || ms <= total.ms) return [];
    const message = `\`timeout.${key}\` is ${formatDuration(ms)}, but the whole call ends after ${formatDuration(total.ms)}: set \`timeout.total\``;
    return [{ pointer: `/timeout/${key}`, message }];
  });
}
