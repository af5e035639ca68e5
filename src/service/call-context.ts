import type { CallContext, ToolCall } from "../core/call.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import { unknownState } from "../core/input-required.ts";
import type { Logger } from "../core/logger.ts";
import { ASKING_KINDS, type ToolDefinition } from "../core/tool.ts";
import { readTraceContext } from "../core/trace-context.ts";
import type { CallRequestFacts } from "../wire/call-codec.ts";
import type { Rpc } from "./rpc.ts";

/** What a call context is made with. */
export interface CallContextDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Gives each call its id, a UUIDv7. */
  readonly nextCallId: () => string;
  /** Longest deadline of a call, whatever a caller asks. */
  readonly maxDeadlineMs: number;
}

/** A call with its facts. Disposing it frees its deadline timer. */
export interface OpenCall extends Disposable {
  readonly call: ToolCall;
  readonly context: CallContext;
  /** What to say when the deadline has passed. */
  overdue(): GatewayError;
}

/**
 * Accepts a call: gives it an id and holds the soonest of its deadlines.
 *
 * @throws GatewayError CONTINUATION_NOT_FOUND where the tool is of a kind that never asks for input.
 */
export function openCall(
  request: CallRequestFacts,
  definition: ToolDefinition,
  rpc: Rpc,
  deps: CallContextDeps,
): OpenCall {
  if (request.continuation !== undefined && !ASKING_KINDS.has(definition.kind)) throw unknownState(definition.name);
  const nowMs = deps.clock.now();
  const limits = limitsOf(request, definition, deps.maxDeadlineMs);
  if (rpc.deadlineMs !== undefined) {
    limits.push({ name: "rpc", ms: Math.max(0, rpc.deadlineMs - nowMs), words: "the caller's RPC deadline" });
  }
  const limit = soonest(limits);
  // The RPC's own deadline is held where its header was read.
  const timer = limit.name === "rpc" ? undefined : deps.clock.after(limit.ms, () => rpc.abort(deadlineExceeded(limit)));
  const callId = deps.nextCallId();
  rpc.accept(callId);
  const { attributes } = request;
  return {
    call: {
      tool: definition.name,
      arguments: request.arguments,
      validateOnly: request.validateOnly,
      maxLength: request.maxLength,
      ...(request.acceptsInput ? { acceptsInput: true } : {}),
      ...(request.continuation === undefined ? {} : { continuation: request.continuation }),
      question: request.question,
      modelWindow: request.modelWindow,
    },
    context: {
      callId,
      principal: rpc.principal,
      signal: rpc.signal,
      deadlineMs: nowMs + limit.ms,
      attempt: 1,
      explain: request.explain,
      sessionId: request.sessionId,
      turnId: request.turnId,
      taskId: request.taskId,
      toolCallId: request.toolCallId,
      ...readTraceContext((name) => rpc.headers.get(name)),
      method: rpc.method,
      logger: Object.keys(attributes).length === 0 ? deps.logger : deps.logger.child({ attributes }),
    },
    overdue: () => deadlineExceeded(limit),
    [Symbol.dispose]: () => timer?.[Symbol.dispose](),
  };
}

interface Limit {
  readonly name: "rpc" | "invocation" | "tool" | "gateway";
  readonly ms: number;
  /** Whose it is, for people. */
  readonly words: string;
}

function limitsOf(request: CallRequestFacts, definition: ToolDefinition, maxDeadlineMs: number): Limit[] {
  const limits: Limit[] = [
    { name: "gateway", ms: maxDeadlineMs, words: "the gateway's limit, `limits.deadline` in gateway.yaml" },
    { name: "tool", ms: definition.defaultTimeoutMs, words: "the tool's `timeout.total`" },
  ];
  if (request.timeoutMs !== undefined) {
    limits.push({ name: "invocation", ms: request.timeoutMs, words: "the caller's `invocation.timeout`" });
  }
  return limits;
}

function soonest(limits: readonly Limit[]): Limit {
  return limits.reduce((a, b) => (b.ms <= a.ms ? b : a));
}

function deadlineExceeded({ name, ms, words }: Limit): GatewayError {
  return new GatewayError("CALL_DEADLINE_EXCEEDED", `the call took longer than ${ms} ms, which is ${words}`, {
    metadata: { limit: name, deadline_ms: String(ms) },
  });
}
