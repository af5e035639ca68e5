import type { FaultPlan } from "../core/fault.ts";
import type { AttemptWatch } from "../core/observation.ts";
import type { HandleValues } from "../core/results.ts";
import type { Affected, RateLimit, Step } from "../core/step.ts";
import { RetryBudgets } from "./retry-budget.ts";
import type { SchemaChecker } from "./schema-checker.ts";
import { createArgumentHandlesStep } from "./steps/argument-handles.ts";
import { createAttemptsStep } from "./steps/attempts.ts";
import { auditStep } from "./steps/audit.ts";
import { createCheckOutputStep } from "./steps/check-output.ts";
import { createCircuitBreakerStep } from "./steps/circuit-breaker.ts";
import { createConcurrencyStep } from "./steps/concurrency.ts";
import { createContinuationStep } from "./steps/continuation.ts";
import { deadlineStep } from "./steps/deadline.ts";
import { dispatchStep } from "./steps/dispatch.ts";
import { createFaultsStep } from "./steps/faults.ts";
import { createHedgeStep } from "./steps/hedge.ts";
import { idempotencyFieldStep } from "./steps/idempotency-field.ts";
import { ledgerStep } from "./steps/ledger.ts";
import { createRateLimitStep } from "./steps/rate-limit.ts";
import { reconcileStep } from "./steps/reconcile.ts";
import { createRetryStep } from "./steps/retry.ts";
import { createValidateArgumentsStep } from "./steps/validate-arguments.ts";

/** What the steps need from outside. */
export interface PipelineStepDeps {
  readonly checker: SchemaChecker;
  /** The faults in force. Absent: no fault is ever put into a call. */
  readonly faults?: (() => FaultPlan) | undefined;
  /** Called when tools may have another availability. */
  readonly changed?: (affected: Affected) => void;
  /** Most calls of each caller in a time, as it is in force. Absent: never a limit. */
  readonly rateLimit?: () => RateLimit | undefined;
  /** What handles in arguments stand for. Absent: they stand for nothing. */
  readonly handles?: HandleValues | undefined;
  /** Watches attempts. Absent: nobody does. */
  readonly attempts?: AttemptWatch | undefined;
  /** A number from 0 to below 1, for the waits between attempts. Default `Math.random`. */
  readonly random?: () => number;
}

/**
 * THE list of steps, outermost first. A new step is one file and one line here.
 * - audit is outermost, so that a call any other step refuses is on record too;
 * - continuation puts in the arguments of the call that goes on, before they are looked at;
 * - argument_handles puts in what handles name, so that it is checked like any argument;
 * - validate-arguments comes before whatever counts, queues or reaches the upstream;
 * - check-output looks at the one result that all attempts come to;
 * - rate-limit counts calls, not attempts, and only those that can be made at all;
 * - idempotency_field comes after it, since callers cannot send that parameter, and before attempts, which share its value;
 * - deadline stands around retry: all attempts together end with it;
 * - retry is the last of the steps that run once a call: what stands inside it runs once an attempt;
 * - hedge runs several attempts at once, each of which is counted and limited like any other;
 * - attempts sees all that an attempt waits for;
 * - circuit-breaker stands around concurrency: what it keeps back takes no slot and no place in a line;
 * - concurrency is one of the last of those that run once an attempt: what waits between attempts holds no slot;
 * - ledger is the last that waits: what is claimed has a slot, and what was refused or queued before left no trace;
 * - dispatch is the moment a call goes out: until then its circuit may keep it back;
 * - faults stands where the upstream does, for everything around it.
 */
export function createPipelineSteps(deps: PipelineStepDeps): readonly Step[] {
  const { checker, changed, rateLimit, faults, random, handles, attempts } = deps;
  const budgets = new RetryBudgets();
  return [
    auditStep,
    createContinuationStep(checker),
    createArgumentHandlesStep(handles),
    createValidateArgumentsStep(checker),
    createCheckOutputStep(checker),
    createRateLimitStep(rateLimit),
    idempotencyFieldStep,
    reconcileStep,
    deadlineStep,
    createRetryStep(random === undefined ? { budgets } : { budgets, random }),
    createHedgeStep(budgets),
    ...(attempts === undefined ? [] : [createAttemptsStep(attempts)]),
    createCircuitBreakerStep((affected) => changed?.(affected)),
    createConcurrencyStep(),
    ledgerStep,
    dispatchStep,
    ...(faults === undefined ? [] : [createFaultsStep(faults)]),
  ];
}
