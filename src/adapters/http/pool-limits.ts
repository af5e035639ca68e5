import { isJsonObject, type JsonObject, ownValue } from "../../core/json.ts";

/** Bounds of the connections to one origin. */
export interface PoolLimits {
  /** Most open at a time. */
  readonly maxConnections: number;
  /** Most calls that wait for one. */
  readonly maxWaiting: number;
  /** Most kept open for later calls. */
  readonly maxIdle: number;
  /** How long one is kept, unless the upstream asks for less. */
  readonly idleMs: number;
}

/** What holds where neither declaration nor gateway.yaml says. Source of 1,024: Envoy's circuit breakers. */
export const DEFAULT_POOL: PoolLimits = { maxConnections: 1_024, maxWaiting: 1_024, maxIdle: 256, idleMs: 4_000 };

/** The limits a declaration sets. */
export type DeclaredPool = Partial<Pick<PoolLimits, "maxConnections" | "maxWaiting" | "maxIdle">>;

const KEYS = { maxConnections: "max_connections", maxWaiting: "max_waiting", maxIdle: "max_idle" } as const;

/** `pool` of a declaration, which is valid by its schema. */
export function declaredPool(keys: JsonObject): DeclaredPool {
  const pool = ownValue(keys, "pool");
  if (!isJsonObject(pool)) return {};
  const entries = Object.entries(KEYS).flatMap(([name, key]) => {
    const value = ownValue(pool, key);
    return typeof value === "number" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(entries);
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
