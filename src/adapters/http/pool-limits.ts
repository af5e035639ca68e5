import type { PoolSettings } from "../../core/adapter.ts";
import { isJsonObject, type JsonObject, ownValue } from "../../core/json.ts";

/** Bounds of the connections to one origin. One is kept as long as they say, unless the upstream asks for less. */
export type PoolLimits = Required<PoolSettings>;

/** What holds where neither declaration nor gateway.yaml says. Source of 1,024: Envoy's circuit breakers. */
const DEFAULT_POOL: PoolLimits = { maxConnections: 1_024, maxWaiting: 1_024, maxIdle: 256, idleMs: 4_000 };

/** `pool` of a declaration, which is valid by its schema, filled up with what gateway.yaml says. */
export function poolLimits(keys: JsonObject, settings: PoolSettings): PoolLimits {
  const pool = ownValue(keys, "pool");
  // The same for thousands of tools.
  if (!isJsonObject(pool) && Object.keys(settings).length === 0) return DEFAULT_POOL;
  const standard = { ...DEFAULT_POOL, ...settings };
  if (!isJsonObject(pool)) return standard;
  const declared = (key: string, otherwise: number): number => {
    const value = ownValue(pool, key);
    return typeof value === "number" ? value : otherwise;
  };
  return {
    maxConnections: declared("max_connections", standard.maxConnections),
    maxWaiting: declared("max_waiting", standard.maxWaiting),
    maxIdle: declared("max_idle", standard.maxIdle),
    idleMs: standard.idleMs,
  };
}

/** The least of each limit: what one tool asks for, no other can exceed. */
export function strictest(first: PoolLimits, others: Iterable<PoolLimits>): PoolLimits {
  let limits = first;
  for (const other of others) {
    limits = {
      maxConnections: Math.min(limits.maxConnections, other.maxConnections),
      maxWaiting: Math.min(limits.maxWaiting, other.maxWaiting),
      maxIdle: Math.min(limits.maxIdle, other.maxIdle),
      idleMs: Math.min(limits.idleMs, other.idleMs),
    };
  }
  return limits;
}
