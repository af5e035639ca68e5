import type { CallContext } from "../../src/core/call.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { LogFields } from "../../src/core/logger.ts";
import type { Journal } from "./journal.ts";
import type { Attempt, SimulatedUpstream } from "./upstream.ts";

/** What the rules look at besides attempts. */
export interface AttemptRuleDeps {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Operations that are on record as begun. */
  readonly claimed: ReadonlySet<string>;
}

/** Holds each attempt, as it begins, against what was promised of attempts. */
export function checkAttempt(
  attempt: Attempt,
  context: CallContext,
  { attempts, running }: Pick<SimulatedUpstream, "attempts" | "running">,
  { clock, journal, claimed }: AttemptRuleDeps,
): void {
  const { tool, callId, id } = attempt;
  const { definition, policy } = tool;
  const breach = (promise: string, facts = ""): void => journal.breach(promise, `${id} of ${callId} ${facts}`);
  if (clock.now() > context.deadlineMs) breach("no attempt after the deadline");
  if (attempt.key !== undefined && attempt.key !== (context.key?.forUpstream ?? callId)) {
    breach("each attempt has the key of its call", attempt.key);
  }
  const beside = [...running].find((each) => each.operation === attempt.operation && each.callId !== callId);
  if (beside !== undefined && !beside.signal.aborted) breach("what runs already is joined", beside.id);
  if (attempt.keyed && policy.effectClass !== "read" && !claimed.has(attempt.operation)) {
    breach("a call is on record before it goes out");
  }
  const ofTool = [...running].filter((each) => each.tool === tool).length + 1;
  if (ofTool > (policy.concurrencyLimit ?? Number.POSITIVE_INFINITY)) breach("concurrency_limit", `${ofTool} run`);
  const group = policy.group;
  const ofGroup = [...running].filter((each) => each.tool.policy.group?.name === group?.name).length + 1;
  if (group !== undefined && ofGroup > (group.maxParallelCalls ?? Number.POSITIVE_INFINITY)) {
    breach("max_parallel_calls", `${ofGroup} run`);
  }
  const before = attempts.filter((each) => each.callId === callId && each.tool === tool);
  const last = before.at(-1);
  if (last === undefined) return;
  if (last.number !== attempt.number) checkRetry(attempt, before, breach);
  else if (policy.effectClass !== "read" || definition.delivery !== "conclusive") breach("only reads are hedged");
  const atOnce = before.filter((each) => each.number === attempt.number).length;
  if (atOnce > (policy.hedge?.max ?? 0)) breach("hedge.max", `${atOnce + 1} attempts`);
}

/** Holds the wait for a retry, as it begins and is logged, against the deadline. */
export function checkWait(
  { callId, waitMs }: LogFields,
  attempts: readonly Attempt[],
  { clock, journal }: Pick<AttemptRuleDeps, "clock" | "journal">,
): void {
  const attempt = attempts.findLast((each) => each.callId === callId);
  if (attempt === undefined) journal.breach("what is tried again was tried", String(callId));
  // What is logged is rounded.
  else if (clock.now() + Number(waitMs) - 1 > attempt.deadlineMs) {
    journal.breach("no wait that ends after the deadline is begun", `${attempt.id} ${String(waitMs)} ms`);
  }
}

function checkRetry(
  { tool, number, startMs }: Attempt,
  before: readonly Attempt[],
  breach: (promise: string, facts?: string) => void,
): void {
  const { retry, effectClass } = tool.policy;
  if (number > retry.maxRetries + 1) breach("max_retries", `attempt ${number}`);
  if (before.some((each) => each.pieces > 0)) breach("no retry after output");
  const last = before.filter((each) => each.number === number - 1);
  if (last.length === 0) breach("attempts are numbered one after the other", `attempt ${number}`);
  for (const each of before) {
    if (each.endMs === undefined && effectClass !== "read") breach("no attempt beside another", each.id);
    if (effectClass === "write" && each.told !== "none") breach("a write that may have acted is not retried", each.id);
  }
  if (!last.some((each) => each.transient || each.cancelled)) breach("only what may pass is retried");
  const [only] = last;
  if (last.length !== 1 || only?.endMs === undefined) return;
  const own = retry.backoff === "fixed" ? retry.initialBackoffMs : 0;
  if (only.askedMs > retry.maxBackoffMs) breach("max_backoff", `asked to wait ${only.askedMs} ms`);
  const waitMs = Math.max(Math.min(own, retry.maxBackoffMs), only.askedMs);
  if (startMs < only.endMs + waitMs) breach("retries wait", `${startMs - only.endMs} ms instead of ${waitMs}`);
}
