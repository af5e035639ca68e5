import { setTimeout as delay } from "node:timers/promises";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type {
  CallContext,
  Invoke,
  ToolCall,
  ToolEvent,
  ToolResult,
  UpstreamEvent,
  UpstreamResult,
} from "../core/call.ts";
import type { CallObserver } from "../core/call-observer.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { AttemptWatch, AuditEntry, AuditTrail, CallWatch, ShortCall, ToolPath } from "../core/observation.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { VERSION } from "../core/version.ts";
import { watchedExporter } from "./exporter-watch.ts";
import { type Gauge, Metering } from "./metering.ts";
import { errorOutcome, LEFT, type Outcome, resultOutcome } from "./outcome.ts";
import { type OpenSpan, Tracing, tracedKey } from "./tracing.ts";

/** How long a stop waits for the collector. */
const LAST_WORDS_MS = 2_000;

/** What telemetry is made with. */
export interface TelemetryOptions {
  readonly settings: {
    readonly prometheus: object | undefined;
    readonly maxTools: number;
    readonly otlp:
      | {
          readonly endpoint: string;
          readonly traces: boolean;
          readonly metrics: boolean;
          readonly sampleRatio: number;
          readonly intervalMs: number;
        }
      | undefined;
  };
  readonly clock: Clock;
  /** Hears of a collector that does not take what is sent. */
  readonly logger: Logger;
  readonly gauges: readonly Gauge[];
}

/** A call that runs. */
class RunningCall {
  readonly #span: OpenSpan | undefined;
  #attempts = 0;
  /** When the last attempt ended, in milliseconds since the epoch. */
  #lastEndMs: number | undefined;

  constructor(span: OpenSpan | undefined) {
    this.#span = span;
  }

  /** An attempt after one that has ended comes after a wait; one beside another, as a hedge, does not. */
  attemptBegins(): void {
    if (this.#attempts === 0 && this.#lastEndMs !== undefined) this.#span?.part("back-off", this.#lastEndMs).end();
    this.#attempts += 1;
  }

  attemptEnds(): void {
    this.#attempts -= 1;
    this.#lastEndMs = Date.now();
  }
}

/** Traces and metrics of calls. Made, and its packages loaded, only where somebody wants any. */
export class Telemetry implements CallWatch, AttemptWatch, AuditTrail, AsyncDisposable {
  readonly #clock: Clock;
  readonly #tracing: Tracing | undefined;
  readonly #metering: Metering | undefined;
  /** By id; a call that asks another tool what became of it runs twice at a time. */
  readonly #running = new Map<string, RunningCall>();

  constructor({ settings, clock, logger, gauges }: TelemetryOptions) {
    this.#clock = clock;
    const { prometheus, maxTools, otlp } = settings;
    const resource = resourceFromAttributes({ "service.name": "toolgate", "service.version": VERSION });
    const watched = watchedExporter(logger);
    const pushes = otlp?.metrics === true;
    this.#tracing = otlp?.traces === true ? new Tracing({ ...otlp, resource, watched }) : undefined;
    this.#metering =
      prometheus !== undefined || pushes
        ? new Metering({
            resource,
            maxTools,
            pulled: prometheus !== undefined,
            otlp: pushes ? otlp : undefined,
            gauges,
            watched,
          })
        : undefined;
  }

  async *run(
    tool: ToolDefinition,
    path: ToolPath,
    call: ToolCall,
    context: CallContext,
  ): AsyncGenerator<ToolEvent, void, undefined> {
    const span = this.#tracing?.call(tool, context);
    const running = new RunningCall(span);
    const outer = this.#running.get(context.callId);
    this.#running.set(context.callId, running);
    this.#metering?.began(tool.name);
    const seen = new SeenCall(tool, this.#clock);
    try {
      for await (const event of path(call, { ...context, ...span?.below, observer: this.#observer(tool, context) })) {
        seen.saw(event);
        yield event;
      }
    } catch (thrown) {
      const error = GatewayError.from(thrown);
      seen.outcome = errorOutcome(error);
      throw error;
    } finally {
      if (outer === undefined) this.#running.delete(context.callId);
      else this.#running.set(context.callId, outer);
      span?.end(seen.outcome);
      this.#metering?.ended(seen.facts(), seen.outcome);
    }
  }

  async *attempt(
    tool: ToolDefinition,
    next: Invoke,
    call: ToolCall,
    context: CallContext,
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    const running = this.#running.get(context.callId);
    running?.attemptBegins();
    const span = this.#tracing?.attempt(tool, context);
    const seen = new SeenAttempt(tool, span, this.#metering);
    const key = context.key === undefined || span === undefined ? {} : { key: tracedKey(context.key, span) };
    try {
      for await (const event of next(call, { ...context, ...span?.below, ...key })) {
        seen.saw(event);
        yield event;
      }
    } catch (thrown) {
      const error = GatewayError.from(thrown);
      seen.outcome = errorOutcome(error);
      throw error;
    } finally {
      seen.end(context.attempt);
      running?.attemptEnds();
    }
  }

  short({ outcome: word, reason, status = "OK" }: ShortCall): void {
    this.#metering?.refused({ word, status, ...(reason === undefined ? {} : { reason }) });
  }

  note({ action, outcome }: AuditEntry): void {
    this.#metering?.act(action, outcome);
  }

  /** The metrics in the text format of Prometheus. */
  async text(): Promise<string> {
    return (await this.#metering?.text()) ?? "";
  }

  /** Sends what waits, if the collector takes it soon. Never rejects. */
  async [Symbol.asyncDispose](): Promise<void> {
    const over = new AbortController();
    const closing = Promise.allSettled([this.#tracing?.close(), this.#metering?.close()]);
    await Promise.race([closing, delay(LAST_WORDS_MS, undefined, { signal: over.signal }).catch(() => undefined)]);
    over.abort();
  }

  #observer(tool: ToolDefinition, { observer }: CallContext): CallObserver {
    return {
      validated: (args) => observer?.validated(args),
      exchanged: (facts) => {
        observer?.exchanged(facts);
        this.#metering?.exchanged(tool.name, facts);
      },
    };
  }
}

/** What an attempt comes to, and what it waits for. */
class SeenAttempt {
  outcome: Outcome = LEFT;
  readonly #tool: ToolDefinition;
  readonly #span: OpenSpan | undefined;
  readonly #metering: Metering | undefined;
  #waiting: { end(): void } | undefined;

  constructor(tool: ToolDefinition, span: OpenSpan | undefined, metering: Metering | undefined) {
    this.#tool = tool;
    this.#span = span;
    this.#metering = metering;
  }

  saw(event: UpstreamEvent): void {
    if (event.type === "queue-enter") this.#waits(event.limit);
    else if (event.type === "queue-leave") this.#goesOn();
    else if (event.type === "upstream-result") this.#ended(event.result);
  }

  end(attempt: number): void {
    this.#goesOn();
    this.#span?.end(this.outcome);
    this.#metering?.attempted(this.#tool.name, attempt, this.outcome);
  }

  #waits(limit: string): void {
    if (this.#waiting !== undefined) return;
    this.#waiting = this.#span?.part(`queue ${limit}`) ?? { end: () => undefined };
    this.#metering?.queued(1);
  }

  #goesOn(): void {
    if (this.#waiting === undefined) return;
    this.#waiting.end();
    this.#waiting = undefined;
    this.#metering?.queued(-1);
  }

  #ended(result: UpstreamResult): void {
    this.outcome = resultOutcome(result);
    const code = result.failure?.upstreamCode ?? result.upstreamCode;
    if (code !== undefined) this.#span?.set(codeAttribute(this.#tool, code));
  }
}

/** What metrics tell of a call. */
class SeenCall {
  outcome: Outcome = LEFT;
  readonly #tool: ToolDefinition;
  readonly #clock: Clock;
  readonly #startedMs: number;
  #firstMs: number | undefined;
  #queuedMs = 0;
  #resultBytes = 0;

  constructor(tool: ToolDefinition, clock: Clock) {
    this.#tool = tool;
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
  }

  saw(event: ToolEvent): void {
    if (event.type === "queue-leave") this.#queuedMs += event.waitedMs;
    if (event.type !== "delta" && event.type !== "completed") return;
    this.#firstMs ??= this.#clock.monotonicMs() - this.#startedMs;
    if (event.type === "delta") this.#resultBytes += Buffer.byteLength(event.text);
    else {
      this.#resultBytes += resultBytes(event.result);
      this.outcome = resultOutcome(event.result);
    }
  }

  facts(): Parameters<Metering["ended"]>[0] {
    return {
      tool: this.#tool.name,
      kind: this.#tool.kind,
      seconds: (this.#clock.monotonicMs() - this.#startedMs) / 1_000,
      firstOutputSeconds: this.#firstMs === undefined ? undefined : this.#firstMs / 1_000,
      queuedSeconds: this.#queuedMs / 1_000,
      resultBytes: this.#resultBytes,
    };
  }
}

function resultBytes({ structuredJson = "", content }: ToolResult): number {
  const parts = content.map((part) => {
    if (part.type === "text") return Buffer.byteLength(part.text);
    return part.type === "blob" ? part.data.length : part.uri.length;
  });
  return parts.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(structuredJson));
}

function codeAttribute({ kind }: ToolDefinition, code: number): Record<string, number> {
  if (kind === "http") return { "http.response.status_code": code };
  return kind === "script" ? { "process.exit.code": code } : { "rpc.jsonrpc.error_code": code };
}
