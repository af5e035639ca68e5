import type { CallContext, Invoke, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import { type Clock, sleep } from "../../core/clock.ts";
import type { Effect } from "../../core/effect.ts";
import { type ErrorReason, GatewayError } from "../../core/errors.ts";
import type { LogFields } from "../../core/logger.ts";
import type { EffectClass, RetryPolicy, Step, ToolPolicy } from "../../core/step.ts";
import { afterAttempts, attemptsOf } from "../attempted-error.ts";
import type { RetryBudgets } from "../retry-budget.ts";

/** What retries are made with. */
export interface RetryStepDeps {
  /** Shared with whatever else repeats calls. */
  readonly budgets: RetryBudgets;
  /** A number from 0 to below 1; default `Math.random`. */
  readonly random?: () => number;
}

/** Faults on the way to the upstream and back. All others are answers of the gateway's own, and stay what they are. */
const PASSING: ReadonlySet<ErrorReason> = new Set(["UPSTREAM_TIMEOUT", "UPSTREAM_UNREACHABLE", "UPSTREAM_ANSWER_LOST"]);

/** With these an attempt ended before anything was sent. */
const NOT_ATTEMPTED: ReadonlySet<ErrorReason> = new Set([
  "CIRCUIT_OPEN",
  "CONCURRENCY_LIMIT_REACHED",
  "UPSTREAM_POOL_EXHAUSTED",
]);

/**
 * Tries a call again after a fault that may pass, where that is safe: surely nothing happened, or a second run of the
 * tool does no harm. Never once output was given on, never beyond the deadline, never before the upstream wants to be
 * asked again: a wait that does not fit before the deadline, or below the longest wait, is not begun. Waits hold nothing; all retries of an upstream share a budget. A call that was tried more than once says
 * so in its result (`attempts`) or its error (metadata `attempts`), and each retry is on record as `tool-call-retry`.
 */
export function createRetryStep({ budgets, random = Math.random }: RetryStepDeps): Step {
  return {
    name: "retry",
    scope: "call",
    compile(tool, policy, { clock }) {
      if (policy.retry.maxRetries === 0) return undefined;
      const parts = { tool: tool.name, policy, clock, budgets, random };
      return (call, context, next) =>
        call.validateOnly ? next(call, context) : retried({ ...parts, context }, call, next);
    },
  };
}

interface Retried extends Required<RetryStepDeps> {
  readonly tool: string;
  readonly policy: ToolPolicy;
  readonly clock: Clock;
  readonly context: CallContext;
}

/** How an attempt ended. */
type Outcome = { readonly delivered: boolean } & (
  | { readonly result: UpstreamResult; readonly error?: undefined }
  | { readonly error: GatewayError; readonly result?: undefined }
);

async function* retried(parts: Retried, call: ToolCall, next: Invoke): AsyncGenerator<UpstreamEvent, void, undefined> {
  const { context, clock, budgets, policy } = parts;
  const made = new Attempts();
  budgets.call(policy.upstream, clock);
  for (let attempt = 1; ; attempt += 1) {
    const outcome = yield* attempted(next(call, { ...context, attempt }));
    made.add(outcome);
    const waitMs = waitBeforeNext(parts, outcome, attempt);
    if (waitMs === undefined) {
      yield { type: "upstream-result", result: made.conclude(outcome) };
      return;
    }
    try {
      await sleep(clock, waitMs, context.signal);
    } catch (reason) {
      throw made.total(GatewayError.from(reason));
    }
  }
}

/** Passes an attempt's events on, but for its end. */
async function* attempted(events: AsyncIterable<UpstreamEvent>): AsyncGenerator<UpstreamEvent, Outcome, undefined> {
  let delivered = false;
  let result: UpstreamResult | undefined;
  try {
    for await (const event of events) {
      if (event.type === "upstream-result") {
        result = event.result;
        continue;
      }
      delivered ||= event.type === "upstream-delta";
      yield event;
    }
  } catch (error) {
    return { error: GatewayError.from(error), delivered };
  }
  if (result === undefined)
    return { error: GatewayError.from(new Error("an attempt ended without a result")), delivered };
  return { result, delivered };
}

/** How long to wait for the next attempt; `undefined`: there is none. */
function waitBeforeNext(parts: Retried, outcome: Outcome, attempt: number): number | undefined {
  const { policy, context, clock, budgets } = parts;
  const { retry, upstream, effectClass } = policy;
  if (attempt > retry.maxRetries || outcome.delivered || context.signal.aborted) return undefined;
  if (!mayPass(outcome) || !isSafe(outcome, effectClass)) return undefined;
  const asked = outcome.result?.failure?.retryAfterMs ?? 0;
  const waitMs = waitOf(retry, attempt, { asked, random: parts.random });
  const facts = { callId: context.callId, tool: parts.tool, attempt, waitMs: Math.round(waitMs), ...causeOf(outcome) };
  const withheld = (why: string): undefined => {
    context.logger.info("tool-call-retry-withheld", { ...facts, why });
  };
  // Sooner than it asks the upstream would only refuse again.
  if (asked > retry.maxBackoffMs) return withheld("retry-after");
  if (clock.now() + waitMs >= context.deadlineMs) return withheld("deadline");
  if (!budgets.take(upstream, retry.budget, clock)) return withheld("budget");
  context.logger.info("tool-call-retry", facts);
  return waitMs;
}

/** Whether another attempt may go better: the fault is one that passes. */
function mayPass({ result, error }: Outcome): boolean {
  if (error === undefined) return result.failure?.transient === true;
  // What did nothing and yet must not be repeated needs a change first.
  return PASSING.has(error.reason) && (error.effect !== "none" || error.retryable);
}

function isSafe({ result, error }: Outcome, effectClass: EffectClass): boolean {
  return effectClass !== "write" || (error ?? result).effect === "none";
}

/** The wait before a retry, counted from 1. What the upstream asks for counts where it is longer. */
function waitOf(
  { backoff, initialBackoffMs, maxBackoffMs }: RetryPolicy,
  retry: number,
  { asked, random }: { readonly asked: number; readonly random: () => number },
): number {
  const growth = { exponential: 2 ** (retry - 1), linear: retry, fixed: 1 }[backoff];
  const longest = Math.min(initialBackoffMs * growth, maxBackoffMs);
  // A random part of the whole spreads callers that failed together best.
  // Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
  const own = backoff === "fixed" ? longest : longest * random();
  return Math.max(own, asked);
}

function causeOf({ result, error }: Outcome): LogFields {
  if (error !== undefined) {
    const limit = error.metadata["limit"];
    return { reason: error.reason, ...(limit === undefined ? {} : { limit }) };
  }
  return { reason: result.failure?.reason, upstreamCode: result.failure?.upstreamCode };
}

/** The attempts of a call, taken together. */
class Attempts {
  #rounds = 0;
  #count = 0;
  /** Whether an attempt that is over may have had an effect. */
  #uncertain = false;
  #before = false;

  add({ result, error }: Outcome): void {
    this.#before = this.#uncertain;
    this.#rounds += 1;
    if (result !== undefined) this.#count += result.attempts ?? 1;
    else if (!NOT_ATTEMPTED.has(error.reason)) this.#count += attemptsOf(error);
    this.#uncertain ||= (error ?? result).effect === "unknown";
  }

  /** The result of the last attempt as that of all. @throws GatewayError, likewise. */
  conclude({ result, error }: Outcome): UpstreamResult {
    if (error !== undefined) throw this.#rounds === 1 ? error : this.total(error, this.#before);
    if (this.#rounds === 1) return result;
    const { failure } = result;
    const told = failure === undefined ? {} : { failure: { ...failure, message: failure.message + this.#words } };
    return { ...result, ...told, effect: this.#effect(result.effect, this.#before), attempts: this.#count };
  }

  /** An error that ends the call after these attempts. */
  total(error: GatewayError, uncertain = this.#uncertain): GatewayError {
    const effect = this.#effect(error.effect, uncertain);
    return afterAttempts(error, { count: this.#count, effect, words: this.#words });
  }

  get #words(): string {
    return ` (after ${this.#count} attempt${this.#count === 1 ? "" : "s"})`;
  }

  /** That the last attempt did nothing says nothing about those before it. */
  #effect(last: Effect, uncertain: boolean): Effect {
    return last === "none" && uncertain ? "unknown" : last;
  }
}
