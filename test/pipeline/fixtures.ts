import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../src/core/call.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { type LogFields, type Logger, silentLogger } from "../../src/core/logger.ts";
import { ANONYMOUS } from "../../src/core/principal.ts";
import type { ToolPolicy } from "../../src/core/step.ts";
import type { ToolDefinition } from "../../src/core/tool.ts";

export function makeTool(changes: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name: "order_status",
    title: "",
    description: "",
    kind: "http",
    inputSchema: { type: "object", properties: { n: { type: "integer" } } },
    outputSchema: undefined,
    hints: {},
    labels: {},
    delivery: "conclusive",
    enabled: true,
    alias: "order_status",
    source: "file:order_status.yaml",
    etag: "e1",
    contractDigest: "d1",
    createTimeMs: 0,
    updateTimeMs: 0,
    defaultTimeoutMs: 60_000,
    toolsets: [],
    leaseExpireTimeMs: undefined,
    ...changes,
  };
}

export const POLICY: ToolPolicy = {
  totalMs: 60_000,
  timeouts: { connectMs: 5_000, readMs: 30_000, idleMs: 30_000 },
  effectClass: "write",
  upstream: "http://127.0.0.1:7434",
  group: undefined,
  retry: { maxRetries: 0, backoff: "exponential", initialBackoffMs: 1_000, maxBackoffMs: 30_000, budget: 0.2 },
  concurrencyLimit: undefined,
  hedge: undefined,
  circuitBreaker: { failureThreshold: 5, resetTimeoutMs: 60_000, scope: "tool" },
  adaptiveConcurrency: false,
  queue: { maxLength: 1_000, maxWaitMs: 30_000 },
  rateLimit: undefined,
};

export function makeCall(args: JsonObject = { n: 1 }, changes: Partial<ToolCall> = {}): ToolCall {
  return { tool: "order_status", arguments: args, validateOnly: false, maxLength: undefined, ...changes };
}

export function makeContext(changes: Partial<CallContext> = {}): CallContext {
  return {
    callId: "0197a000-0000-7000-8000-000000000001",
    principal: ANONYMOUS,
    signal: new AbortController().signal,
    deadlineMs: 60_000,
    attempt: 1,
    explain: false,
    sessionId: undefined,
    turnId: undefined,
    taskId: undefined,
    toolCallId: undefined,
    traceparent: undefined,
    logger: silentLogger,
    ...changes,
  };
}

export const RESULT: UpstreamEvent = { type: "upstream-result", result: { content: [], value: 1, effect: "none" } };

/** An adapter that gives these events. */
export function invokeOf(...events: readonly UpstreamEvent[]): Invoke {
  return async function* () {
    yield* events;
  };
}

export async function collect<T>(events: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const event of events) all.push(event);
  return all;
}

export function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** A line of a log. */
export interface RecordedLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** A logger that keeps its lines. */
export function recordingLogger(lines: RecordedLine[]): Logger {
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}) => {
      lines.push({ level, message, fields });
    };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => recordingLogger(lines),
  };
}
