import { hash } from "node:crypto";
import type { CallContext, ToolCall, ToolEvent, ToolResult, UpstreamExchange } from "../core/call.ts";
import type { CallObserver, ExchangeFacts } from "../core/call-observer.ts";
import type { Clock } from "../core/clock.ts";
import type { GatewayError } from "../core/errors.ts";
import { canonicalJson, type JsonObject, stringifyJson } from "../core/json.ts";
import type { LogFields } from "../core/logger.ts";
import type { ToolDefinition } from "../core/tool.ts";

/** Most exchanges that a line tells of. */
const MAX_EXCHANGES = 8;
/** Longest text of an argument or a result, in UTF-16 units: a longer one is cut. */
const MAX_TEXT = 8_000;

/** What is to be known of a call. */
export interface CallLinesOptions {
  readonly tool: ToolDefinition;
  readonly call: ToolCall;
  readonly context: CallContext;
  readonly clock: Clock;
  /** Whether what is said is kept, too. */
  readonly session: boolean;
}

type Completed = Extract<ToolEvent, { type: "completed" }>;

/** Takes note of a call on its way, and makes lines of it. */
export class CallLines implements CallObserver {
  readonly #options: CallLinesOptions;
  readonly #startedMs: number;
  #queuedMs = 0;
  #streamedBytes = 0;
  #streamed = "";
  #exchanges: UpstreamExchange[] = [];
  #validated: JsonObject | undefined;
  #facts: ExchangeFacts | undefined;
  #completed: Completed | undefined;
  #error: GatewayError | undefined;

  constructor(options: CallLinesOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
  }

  validated(args: JsonObject): void {
    this.#validated = args;
  }

  /** Of several attempts the last counts. */
  exchanged(facts: ExchangeFacts): void {
    this.#facts = facts;
  }

  /** An event on its way to the caller. */
  saw(event: ToolEvent): void {
    if (event.type === "queue-leave") this.#queuedMs += event.waitedMs;
    else if (event.type === "completed") this.#completed = event;
    else if (event.type === "delta") this.#sawText(event.text);
    else if (event.type === "exchange" && this.#exchanges.length < MAX_EXCHANGES) this.#exchanges.push(event.exchange);
  }

  failed(error: GatewayError): void {
    this.#error = error;
  }

  /** The line of the gateway's log. */
  gatewayLine(): LogFields {
    const { tool, call, clock } = this.#options;
    const canonical = canonicalJson(call.arguments);
    const { connectMs, firstByteMs, requestBytes, responseBytes, code } = this.#facts ?? {};
    return present({
      ...this.#ids(),
      kind: tool.kind,
      argumentsDigest: digestOf(canonical),
      ...(call.validateOnly ? { validateOnly: true } : {}),
      ...this.#outcome(code),
      queuedMs: microsecond(this.#queuedMs),
      connectMs: connectMs === undefined ? undefined : microsecond(connectMs),
      firstByteMs: firstByteMs === undefined ? undefined : microsecond(firstByteMs),
      totalMs: microsecond(clock.monotonicMs() - this.#startedMs),
      argumentBytes: Buffer.byteLength(canonical),
      requestBytes,
      responseBytes,
      resultBytes: this.#completed === undefined ? this.#streamedBytes : this.#resultBytes(this.#completed.result),
    });
  }

  /** The line of the session log. Arguments and results stand in it as text, since what they hold is anybody's. */
  sessionLine(): LogFields {
    const { call } = this.#options;
    const validated = this.#validated;
    return present({
      ...this.#ids(),
      arguments: shown(call.arguments),
      validated: validated === undefined ? undefined : shown(validated),
      question: call.question,
      upstream: this.#exchanges.map(({ method, url, requestBody, status, firstByteMs }) =>
        present({ method, url, requestBody, status, firstByteMs }),
      ),
      ...this.#outcome(this.#facts?.code),
      streamed: this.#streamed === "" ? undefined : this.#streamed,
      result: this.#completed === undefined ? undefined : resultShown(this.#completed.result),
      error: this.#error?.message,
    });
  }

  #ids(): Record<string, unknown> {
    const { tool, context } = this.#options;
    const { callId, sessionId, turnId, taskId, toolCallId, principal, traceparent } = context;
    const traceId = traceparent?.slice(3, 35);
    return { callId, sessionId, turnId, taskId, toolCallId, traceId, principal: principal.id, tool: tool.name };
  }

  #outcome(code: number | undefined): Record<string, unknown> {
    const error = this.#error;
    if (error !== undefined) {
      const { reason, status, effect, metadata } = error;
      const attempts = Number(Object.hasOwn(metadata, "attempts") ? metadata["attempts"] : 1);
      return { outcome: "error", status, reason, upstreamCode: code, effect, attempts };
    }
    if (this.#completed === undefined) return { outcome: "left", status: "CANCELLED", upstreamCode: code };
    const { effect, attempts, result } = this.#completed;
    const { failure, needsInput } = result;
    const upstreamCode = failure?.upstreamCode ?? code;
    if (failure !== undefined) {
      return { outcome: "failure", status: "OK", reason: failure.reason, upstreamCode, effect, attempts };
    }
    return { outcome: needsInput === undefined ? "ok" : "needs-input", status: "OK", upstreamCode, effect, attempts };
  }

  #sawText(text: string): void {
    this.#streamedBytes += Buffer.byteLength(text);
    if (this.#options.session && this.#streamed.length < MAX_TEXT) this.#streamed += text.slice(0, MAX_TEXT);
  }

  #resultBytes({ structuredJson = "", content }: ToolResult): number {
    const parts = content.map((part) => {
      if (part.type === "text") return Buffer.byteLength(part.text);
      return part.type === "blob" ? part.data.length : part.uri.length;
    });
    return parts.reduce((sum, bytes) => sum + bytes, this.#streamedBytes + Buffer.byteLength(structuredJson));
  }
}

/** Tells equal arguments from others: SHA-256 of their canonical JSON, 16 hexadecimal digits of it. */
export function digestOf(canonical: string): string {
  return hash("sha256", canonical, "hex").slice(0, 16);
}

function shown(args: JsonObject): string {
  return cut(stringifyJson(args));
}

/** Results are masked before they come here, so nothing is cut in two that a mask would have hidden. */
function resultShown({ structuredJson, content, failure, truncation, needsInput }: ToolResult): LogFields {
  const texts = content.map((part) => {
    if (part.type === "text") return { text: cut(part.text) };
    return part.type === "blob"
      ? { mimeType: part.mimeType, bytes: part.data.length }
      : { uri: part.uri, mimeType: part.mimeType };
  });
  return present({
    json: structuredJson === undefined ? undefined : cut(structuredJson),
    content: texts.length === 0 ? undefined : texts.slice(0, 20),
    failure: failure === undefined ? undefined : { reason: failure.reason, message: cut(failure.message) },
    truncated: truncation?.mode,
    needsInput: needsInput?.requestsJson,
  });
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`;
}

/** To the microsecond. */
function microsecond(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}

function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
