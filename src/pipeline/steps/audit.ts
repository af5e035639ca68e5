import type { CallContext, Invoke, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import type { LogFields } from "../../core/logger.ts";
import type { Step } from "../../core/step.ts";

/**
 * Puts each call on record: `tool-call-start` at level debug, and `tool-call-end` at info with what came of it:
 * `ms` is how long it took, `queuedMs` how much of it the call waited for its turn; `outcome` is `ok`, `failure` (the tool said no), `needs-input`, `error`, or `left` (the reader went away before the end). A fault of
 * the gateway is logged at level error. Arguments and results never stand in the log.
 */
export const auditStep: Step = {
  name: "audit",
  scope: "call",
  compile(tool, _policy, { clock }) {
    return (call, context, next) => audited({ tool: tool.name, clock, call, context, next });
  },
};

interface Audited {
  readonly tool: string;
  readonly clock: Clock;
  readonly call: ToolCall;
  readonly context: CallContext;
  readonly next: Invoke;
}

async function* audited({ tool, clock, call, context, next }: Audited): AsyncGenerator<UpstreamEvent, void, undefined> {
  const startedMs = clock.monotonicMs();
  const facts = factsOf(tool, call, context);
  context.logger.debug("tool-call-start", facts);
  let outcome: LogFields = { outcome: "left" };
  let queuedMs: number | undefined;
  let level: "info" | "error" = "info";
  try {
    for await (const event of next(call, context)) {
      if (event.type === "upstream-result") outcome = outcomeOf(event.result);
      if (event.type === "queue-leave") queuedMs = (queuedMs ?? 0) + event.waitedMs;
      yield event;
    }
  } catch (thrown) {
    const error = GatewayError.from(thrown);
    outcome = errorOutcome(error);
    if (error.reason === "INTERNAL") level = "error";
    throw error;
  } finally {
    const ms = microsecond(clock.monotonicMs() - startedMs);
    const queued = queuedMs === undefined ? {} : { queuedMs: microsecond(queuedMs) };
    context.logger[level]("tool-call-end", { ...facts, ms, ...queued, ...outcome });
  }
}

/** To the microsecond. */
function microsecond(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}

function factsOf(tool: string, call: ToolCall, context: CallContext): LogFields {
  const { callId, principal, sessionId, turnId, taskId, toolCallId } = context;
  const facts = { callId, tool, principal: principal.id, sessionId, turnId, taskId, toolCallId };
  const present = Object.entries(facts).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(present), ...(call.validateOnly ? { validateOnly: true } : {}) };
}

function outcomeOf({ failure, effect, upstreamCode, attempts, needsInput }: UpstreamResult): LogFields {
  const passed = needsInput === undefined ? "ok" : "needs-input";
  return {
    outcome: failure === undefined ? passed : "failure",
    ...(failure === undefined ? {} : { reason: failure.reason }),
    ...(upstreamCode === undefined ? {} : { upstreamCode }),
    effect,
    attempts: attempts ?? 1,
  };
}

/** What lies below an error goes along, but not where a caller's arguments are at fault: it may quote them. */
function errorOutcome(error: GatewayError): LogFields {
  const { reason, status, effect, metadata } = error;
  const outcome = { outcome: "error", reason, effect, ...(Object.keys(metadata).length === 0 ? {} : { metadata }) };
  return status === "INVALID_ARGUMENT" || error.cause === undefined ? outcome : { ...outcome, error };
}
