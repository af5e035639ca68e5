import {
  type Attributes,
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { Resource } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { CallContext, CallKey } from "../core/call.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { formatTraceparent, parseTraceparent, type TraceContext } from "../core/trace-context.ts";
import { VERSION } from "../core/version.ts";
import type { Outcome } from "./outcome.ts";

/** Numbers of status codes. Source: google/rpc/code.proto. */
const STATUS_NUMBERS: Readonly<Record<string, number>> = Object.fromEntries(
  (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED " +
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
  )
    .split(" ")
    .map((name, number) => [name, number]),
);

/** How traces are made and sent. */
export interface TracingOptions {
  readonly endpoint: string;
  readonly sampleRatio: number;
  readonly resource: Resource;
  /** Makes the exporter one that tells how it fares. */
  readonly watched: <E extends { export: unknown }>(exporter: E, what: string) => E;
}

/** A span with what goes on below it. */
export interface OpenSpan {
  /** What the upstream, or whoever works below it, is told. */
  readonly below: Pick<TraceContext, "traceparent" | "tracestate">;
  set(attributes: Attributes): void;
  /** A part of it that waits; end it with `end()`. */
  part(name: string, startMs?: number): { end(): void };
  end(outcome: Outcome): void;
}

/** Makes spans of calls. */
export class Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;

  constructor({ endpoint, sampleRatio, resource, watched }: TracingOptions) {
    const exporter = watched(new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis: 5_000 }), "traces");
    this.#provider = new TracerProvider({
      resource,
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
      spanLimits: { attributeValueLengthLimit: 512 },
      spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: 8_192, scheduledDelayMillis: 1_000 })],
    });
    this.#tracer = this.#provider.getTracer("toolgate", VERSION);
  }

  /** The span of a whole call. Names by the conventions of OpenTelemetry for RPC and for tools of models. */
  call(tool: ToolDefinition, context: CallContext): OpenSpan {
    const [rpcService = "", rpcMethod = ""] = (context.method ?? "").split("/");
    return this.#open(`execute_tool ${tool.name}`, SpanKind.SERVER, context, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool.name,
      "toolgate.tool.kind": tool.kind,
      "toolgate.call.id": context.callId,
      "enduser.id": context.principal.id,
      ...(rpcMethod === "" ? {} : { "rpc.system": "grpc", "rpc.service": rpcService, "rpc.method": rpcMethod }),
      ...(context.toolCallId === undefined ? {} : { "gen_ai.tool.call.id": context.toolCallId }),
      ...(context.sessionId === undefined ? {} : { "gen_ai.conversation.id": context.sessionId }),
    });
  }

  /** The span of an attempt, from its first wait to the upstream's answer. */
  attempt(tool: ToolDefinition, context: CallContext): OpenSpan {
    const mcp = tool.kind === "mcp" ? { "mcp.method.name": "tools/call" } : {};
    return this.#open(`attempt ${context.attempt}`, SpanKind.CLIENT, context, {
      "gen_ai.tool.name": tool.name,
      "toolgate.tool.kind": tool.kind,
      "toolgate.attempt": context.attempt,
      ...mcp,
    });
  }

  /** Sends what waits. */
  async close(): Promise<void> {
    await this.#provider.shutdown();
  }

  #open(name: string, kind: SpanKind, parent: TraceContext, attributes: Attributes): OpenSpan {
    const context = contextOf(parent);
    const span = this.#tracer.startSpan(name, { kind, attributes }, context);
    return openSpan(span, this.#tracer, trace.setSpan(context, span), parent.tracestate);
  }
}

function openSpan(span: Span, tracer: Tracer, context: Context, tracestate: string | undefined): OpenSpan {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const traceparent = formatTraceparent({ traceId, spanId, flags: traceFlags });
  return {
    below: { traceparent, ...(tracestate === undefined ? {} : { tracestate }) },
    set: (attributes) => void span.setAttributes(attributes),
    part: (name, startMs) => tracer.startSpan(name, startMs === undefined ? {} : { startTime: startMs }, context),
    end({ word, reason, status }) {
      const number = STATUS_NUMBERS[status] ?? 2;
      span.setAttributes({ "toolgate.outcome": word, "rpc.grpc.status_code": number });
      if (reason !== undefined) span.setAttribute("error.type", reason);
      if (word === "error" || word === "failure") span.setStatus({ code: SpanStatusCode.ERROR, message: reason ?? "" });
      span.end();
    },
  };
}

function contextOf({ traceparent, tracestate }: TraceContext): Context {
  const parent = parseTraceparent(traceparent);
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, flags: traceFlags } = parent;
  const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true, ...state });
}

/** A key whose claim is a part of the span. */
export function tracedKey(key: CallKey, span: OpenSpan): CallKey {
  return {
    value: key.value,
    forUpstream: key.forUpstream,
    async claim() {
      const part = span.part("ledger");
      try {
        await key.claim();
      } finally {
        part.end();
      }
    },
    mayHaveActed: () => key.mayHaveActed(),
  };
}
