/** What stands in for an upstream's answer. */
export const FAULT_OUTCOMES = ["unreachable", "timeout", "answer_lost", "unavailable", "rate_limited"] as const;

/** One of {@link FAULT_OUTCOMES}. */
export type FaultOutcome = (typeof FAULT_OUTCOMES)[number];

/** A fault that is put into calls on purpose, so that people can rehearse what their systems do then. */
export interface FaultRule {
  /** Globs over names of tools. */
  readonly tools: readonly string[];
  /** Share of attempts that have it, above 0 and at most 1. */
  readonly share: number;
  /** Wait before the upstream is called. */
  readonly latencyMs: number;
  /** What the attempt ends with; `answer_lost` after the upstream was called, the others instead of it. */
  readonly outcome: FaultOutcome | undefined;
  /** Bytes of text output after which the answer is lost. */
  readonly cutAfterBytes: number | undefined;
}

/** The faults in force. */
export interface FaultPlan {
  /** The same seed gives the same attempts a fault, in the order they come. */
  readonly seed: number;
  /** All that fit a tool count, in this order. */
  readonly rules: readonly FaultRule[];
}
