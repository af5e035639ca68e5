import type { ToolPolicy } from "../core/step.ts";

/** What an attempt may have to wait for after it has passed its circuit. */
export interface WaitsBeforeDispatch {
  /** For its turn, where so many may run at a time. */
  readonly turn: boolean;
  /** For the record of its call, where that has a key. */
  readonly record: boolean;
}

export function waitsBeforeDispatch(policy: ToolPolicy): WaitsBeforeDispatch {
  const { concurrencyLimit, adaptiveConcurrency, group, effectClass } = policy;
  return {
    turn: concurrencyLimit !== undefined || adaptiveConcurrency || group?.maxParallelCalls !== undefined,
    record: effectClass !== "read",
  };
}
