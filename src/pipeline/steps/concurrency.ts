import type { CallContext, Invoke, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { linkSignals } from "../../core/signal.ts";
import type { Slot, SlotRefusal } from "../../core/slots.ts";
import type { QueuePolicy, Step, ToolPolicy } from "../../core/step.ts";
import type { ToolDefinition } from "../../core/tool.ts";
import { CallLimit } from "../limits/call-limit.ts";
import { StateTable } from "../limits/state-table.ts";

/** Most limits that are remembered: more than tools a gateway serves. */
const MAX_LIMITS = 20_000;

/**
 * Lets at most so many calls of a tool, and of its group, run at a time; the others wait in order, in a line that is
 * bounded in length and time. A call takes its tool's slot first and its group's after it: so it waits for its group
 * with nothing that another tool could want, and one that waits for its tool keeps nothing from its group. No two calls
 * can wait for each other. Limits belong to the names of tool and group: a new version goes on with those of the old.
 */
export function createConcurrencyStep(): Step {
  const table = new StateTable<CallLimit>(MAX_LIMITS, (limit) => limit.isAtRest);
  return {
    name: "concurrency",
    scope: "attempt",
    compile(tool, policy, { clock }) {
      const limits = limitsOf(tool, policy, (subject) => table.of(subject, () => new CallLimit(subject, clock)));
      if (limits.length === 0) return undefined;
      const path: LimitedPath = { tool, limits, queue: policy.queue, clock };
      return (call, context, next) => (call.validateOnly ? next(call, context) : limited(path, call, context, next));
    },
    availability: (tool, { group }) =>
      table.find(ofTool(tool))?.availability() ??
      (group === undefined ? undefined : table.find(ofGroup(group.name))?.availability()),
  };
}

function ofTool(name: string): string {
  return `tool "${name}"`;
}

function ofGroup(name: string): string {
  return `group "${name}"`;
}

function limitsOf(
  { name }: ToolDefinition,
  { concurrencyLimit, adaptiveConcurrency, group }: ToolPolicy,
  limitOf: (subject: string) => CallLimit,
): readonly CallLimit[] {
  const limits: CallLimit[] = [];
  if (concurrencyLimit !== undefined || adaptiveConcurrency) {
    const limit = limitOf(ofTool(name));
    const key = adaptiveConcurrency ? "concurrency.adaptive" : "concurrency_limit";
    limit.configure({ key, most: concurrencyLimit, adaptive: adaptiveConcurrency });
    limits.push(limit);
  }
  if (group?.maxParallelCalls !== undefined) {
    const limit = limitOf(ofGroup(group.name));
    limit.configure({ key: "max_parallel_calls", most: group.maxParallelCalls, adaptive: false });
    limits.push(limit);
  }
  return limits;
}

/** What the calls of one tool have in common. */
interface LimitedPath {
  readonly tool: ToolDefinition;
  /** In the order they are taken. */
  readonly limits: readonly CallLimit[];
  readonly queue: QueuePolicy;
  readonly clock: Clock;
}

async function* limited(
  path: LimitedPath,
  call: ToolCall,
  context: CallContext,
  next: Invoke,
): AsyncGenerator<UpstreamEvent, void, undefined> {
  const slots: Slot[] = [];
  try {
    let waitedMs = 0;
    for (const limit of path.limits) {
      const slot = limit.free
        ? await limit.take({ signal: context.signal, refused: (refusal) => refused(path, limit, refusal) })
        : yield* inTurn(path, limit, context.signal, waitedMs);
      waitedMs += slot.waitedMs;
      slots.push(slot);
    }
    yield* observed(path, context.signal, next(call, context));
  } finally {
    for (const slot of slots.toReversed()) slot[Symbol.dispose]();
  }
}

/**
 * Waits in line, and tells when the wait begins and ends.
 *
 * @throws GatewayError CONCURRENCY_LIMIT_REACHED; the signal's reason, saying where the time went.
 */
async function* inTurn(
  path: LimitedPath,
  limit: CallLimit,
  signal: AbortSignal,
  waitedMs: number,
): AsyncGenerator<UpstreamEvent, Slot, undefined> {
  const { queue, clock } = path;
  using link = linkSignals(signal);
  const sinceMs = clock.monotonicMs();
  const position = limit.waiting + 1;
  const taken = Promise.resolve(
    limit.take({
      signal: link.signal,
      maxWaiting: queue.maxLength,
      maxWaitMs: Math.max(0, queue.maxWaitMs - waitedMs),
      refused: (refusal) => refused(path, limit, refusal),
    }),
  );
  // The line may refuse while the reader has not come back for the outcome.
  taken.catch(() => undefined);
  let isHeld = false;
  try {
    yield { type: "queue-enter", limit: limit.subject, position };
    const outcome = await taken.catch((error: unknown) => GatewayError.from(error));
    yield { type: "queue-leave", waitedMs: clock.monotonicMs() - sinceMs };
    // The reader may have been slow to come for more.
    if (signal.aborted) {
      const reason = outcome instanceof GatewayError ? outcome : GatewayError.from(signal.reason);
      throw endedInLine(path.tool, limit, reason);
    }
    if (outcome instanceof GatewayError) throw outcome;
    isHeld = true;
    return outcome;
  } finally {
    if (!isHeld) {
      link.abort(new GatewayError("CALL_CANCELLED", "the call was given up while it waited for its turn"));
      taken.then((slot) => slot[Symbol.dispose]()).catch(() => undefined);
    }
  }
}

/** The events, of which an adaptive limit of the tool learns how long the call took and whether it failed. */
async function* observed(
  { limits: [limit], clock }: LimitedPath,
  signal: AbortSignal,
  events: AsyncIterable<UpstreamEvent>,
): AsyncGenerator<UpstreamEvent, void, undefined> {
  if (limit?.key !== "concurrency.adaptive") {
    yield* events;
    return;
  }
  const sinceMs = clock.monotonicMs();
  const inFlight = limit.running;
  let latencyMs: number | undefined;
  const elapsedMs = (): number => (latencyMs ??= clock.monotonicMs() - sinceMs);
  try {
    for await (const event of events) {
      // A long stream is not a slow one: what counts is its beginning.
      if (event.type === "upstream-delta") elapsedMs();
      if (event.type === "upstream-result") {
        limit.observe({ latencyMs: elapsedMs(), inFlight, overloaded: isOverloadResult(event.result) });
      }
      yield event;
    }
  } catch (thrown) {
    const overloaded = isOverload(GatewayError.from(thrown));
    if (overloaded || !signal.aborted) limit.observe({ latencyMs: elapsedMs(), inFlight, overloaded });
    throw thrown;
  }
}

function isOverloadResult({ failure }: UpstreamResult): boolean {
  return failure !== undefined && (failure.upstreamFault || failure.reason === "UPSTREAM_RATE_LIMITED");
}

function isOverload({ reason }: GatewayError): boolean {
  switch (reason) {
    case "UPSTREAM_TIMEOUT":
    case "UPSTREAM_UNREACHABLE":
    case "UPSTREAM_ANSWER_LOST":
    case "CALL_DEADLINE_EXCEEDED":
      return true;
    default:
      return false;
  }
}

function refused({ tool, queue }: LimitedPath, limit: CallLimit, refusal: SlotRefusal): GatewayError {
  const { why, position } = refusal;
  const line =
    why === "full"
      ? "as many as may wait do so already (`queue.max_length`)"
      : `its turn did not come within ${queue.maxWaitMs} ms (\`queue.max_wait\`), it was number ${position} in line`;
  const retryAfterMs = limit.retryAfterMs(refusal);
  const text = `tool "${tool.name}" was not called: ${limit.subject} is at its limit (\`${limit.key}\`), ${limit.load()}, and ${line}; call again in ${retryText(retryAfterMs)}`;
  return new GatewayError("CONCURRENCY_LIMIT_REACHED", text, {
    retryAfterMs,
    metadata: {
      tool: tool.name,
      limit: "queue",
      setting: why === "full" ? "queue.max_length" : "queue.max_wait",
      of: limit.subject,
      running: String(limit.running),
      position: String(position),
    },
  });
}

function retryText(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${Math.ceil(ms / 1_000)} s`;
}

/** Nothing was sent, so nothing can have happened. */
function endedInLine(tool: ToolDefinition, limit: CallLimit, reason: GatewayError): GatewayError {
  const text = `${reason.message}; it waited for its turn (\`${limit.key}\` of ${limit.subject}) and was not sent`;
  return new GatewayError(reason.reason, text, {
    modelMessage: `${reason.modelMessage}; it waited for its turn and was not sent`,
    effect: "none",
    metadata: { ...reason.metadata, tool: tool.name, phase: "queue", of: limit.subject },
    cause: reason,
  });
}
