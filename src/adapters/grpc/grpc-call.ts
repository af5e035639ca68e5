import type { CallContext, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import { sleep } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, stringifyJson } from "../../core/json.ts";
import { bodyValue, fillBody } from "../shared/body-template.ts";
import { referencesIn } from "../shared/value-template.ts";
import { Dispatch, type DispatchEnvironment } from "./dispatch.ts";
import type { Exchange } from "./exchange.ts";
import { effectOf, statusFailure, unreadableFailure } from "./failure.ts";
import { BadMessage, framed } from "./message-reader.ts";
import type { MethodSource } from "./method-source.ts";
import { metadataOf, reportExchange } from "./request-headers.ts";
import {
  AnswerProblem,
  DescriptorProblem,
  decodeAnswer,
  encodeRequest,
  type Method,
  RequestProblem,
} from "./services.ts";

/** A server that says DEADLINE_EXCEEDED so shortly before the call's own deadline says no more than that one does. */
const SAME_DEADLINE_MS = 250;

/** What the calls of one tool have in common. */
export interface GrpcCallEnvironment extends DispatchEnvironment {
  readonly source: MethodSource;
  /** The calls that run, each from its first event to its last. */
  readonly running: Set<GrpcCall>;
}

/** One call of a gRPC tool. */
export class GrpcCall {
  readonly #environment: GrpcCallEnvironment;
  readonly #call: ToolCall;
  readonly #context: CallContext;
  readonly #dispatch: Dispatch;
  #sentBytes = 0;

  constructor(environment: GrpcCallEnvironment, call: ToolCall, context: CallContext) {
    this.#environment = environment;
    this.#call = call;
    this.#context = context;
    this.#dispatch = new Dispatch(environment, context);
  }

  /** Ends the call at once with this reason, resetting its stream. */
  stop(reason: unknown): void {
    this.#dispatch.stop(reason);
  }

  /** Runs the call. Throws GatewayError only. */
  async *events(): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { signal } = this.#context;
    const { running } = this.#environment;
    const onAbort = (): void => this.stop(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    running.add(this);
    try {
      if (signal.aborted) onAbort();
      yield* this.#run();
    } catch (error) {
      throw this.#dispatch.stopped ?? GatewayError.from(error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      running.delete(this);
      this.#dispatch.close();
      this.#tell();
    }
  }

  async *#run(): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { config, secrets } = this.#environment;
    await secrets.fresh(referencesIn(config.metadata), this.#dispatch.signal);
    // A secret that is missing is missing before anything else.
    metadataOf(config, secrets);
    const request = this.#request();
    const method = await this.#method();
    if (this.#call.validateOnly || method === undefined) {
      yield* this.#validated(method, request);
      return;
    }
    const frame = framed(this.#encoded(method, request));
    this.#sentBytes = frame.length;
    const { path } = method;
    const exchange = await this.#dispatch.send({ path, frame, readOnly: config.readOnly });
    if (this.#context.explain) yield this.#report(request, exchange);
    yield* this.#answer(method, exchange);
  }

  async *#answer(method: Method, exchange: Exchange): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { tool, settings } = this.#environment.config;
    const isStream = method.desc.methodKind === "server_streaming";
    const passedOn = isStream && tool.delivery === "incremental";
    const values: JsonValue[] = [];
    let bytes = 0;
    try {
      for (let message = await exchange.read(); message !== undefined; message = await exchange.read()) {
        if (this.#dispatch.stopped !== undefined) throw this.#dispatch.stopped;
        const value = decodeAnswer(method, message);
        bytes += passedOn ? 0 : message.length;
        if (bytes > settings.maxResponseBytes) throw this.#tooLarge(exchange);
        if (passedOn) yield { type: "upstream-delta", text: deltaText(value) };
        else values.push(value);
      }
      yield { type: "upstream-result", result: await this.#result(exchange, isStream, passedOn ? undefined : values) };
    } catch (error) {
      yield { type: "upstream-result", result: this.#unreadable(exchange, error) };
    }
  }

  /** @throws what says more than that the answer cannot be read. */
  #unreadable(exchange: Exchange, error: unknown): UpstreamResult {
    if (error instanceof BadMessage && error.tooLarge) throw this.#tooLarge(exchange);
    if (!(error instanceof AnswerProblem) && !(error instanceof BadMessage)) throw error;
    return unreadableFailure(this.#environment.config.tool.name, error.message, exchange.effect);
  }

  /** `values`: what was not given on already. */
  async #result(exchange: Exchange, isStream: boolean, values: readonly JsonValue[] = []): Promise<UpstreamResult> {
    const { tool, readOnly } = this.#environment.config;
    const status = exchange.end;
    if (status.name === "DEADLINE_EXCEEDED") await this.#ownDeadline();
    if (status.name !== "OK") return statusFailure(tool.name, status, readOnly);
    const outcome = { upstreamCode: status.code, effect: effectOf(status, readOnly), content: [] };
    if (isStream) return tool.delivery === "incremental" ? outcome : { ...outcome, value: values };
    const [value] = values;
    if (value !== undefined && values.length === 1) return { ...outcome, value };
    return unreadableFailure(tool.name, `is OK and has ${values.length} messages where one is due`, outcome.effect);
  }

  /** The server was told the call's deadline, and may say first that it is over. */
  async #ownDeadline(): Promise<void> {
    const { clock } = this.#environment;
    const leftMs = this.#context.deadlineMs - clock.now();
    if (leftMs < SAME_DEADLINE_MS) await sleep(clock, 2 * SAME_DEADLINE_MS, this.#dispatch.signal);
  }

  #tell(): void {
    const { exchange } = this.#dispatch;
    if (exchange !== undefined) this.#context.observer?.exchanged({ ...exchange.facts, requestBytes: this.#sentBytes });
  }

  /** Where the call is only validated, `undefined` if nobody knows the method without asking the server. */
  async #method(): Promise<Method | undefined> {
    const { config, source } = this.#environment;
    const ask = this.#call.validateOnly ? undefined : (path: string, frame: Buffer) => this.#dispatch.ask(path, frame);
    try {
      return await source.method(ask);
    } catch (error) {
      if (!(error instanceof DescriptorProblem)) throw error;
      const { name } = config.tool;
      throw new GatewayError("UPSTREAM_UNREACHABLE", `${name}: its method is not known: ${error.message}`, {
        modelMessage: `${name}: the gateway does not know the upstream's messages; its operator must mend it`,
        metadata: { tool: name },
        retryable: false,
        cause: error,
      });
    }
  }

  /** The request message as JSON. */
  #request(): JsonObject {
    const { request, keepsNull } = this.#environment.config;
    const args = this.#call.arguments;
    if (request !== undefined) {
      const filled = fillBody(request, args, keepsNull);
      return filled !== undefined && isJsonObject(filled) ? filled : {};
    }
    const given = Object.keys(args).flatMap((param) => {
      const value = bodyValue({ param }, args, keepsNull);
      return value === undefined ? [] : [[param, value] as const];
    });
    return Object.fromEntries(given);
  }

  #encoded(method: Method, request: JsonObject): Uint8Array {
    try {
      return encodeRequest(method, request);
    } catch (error) {
      if (!(error instanceof RequestProblem)) throw error;
      const { name } = this.#environment.config.tool;
      throw new GatewayError("ARGUMENTS_INVALID", `${name}: ${error.message}; the upstream was not reached`, {
        violations: [{ field: "", description: error.message, reason: "NO_MESSAGE" }],
        metadata: { tool: name },
      });
    }
  }

  async *#validated(method: Method | undefined, request: JsonObject): AsyncGenerator<UpstreamEvent, void, undefined> {
    if (method !== undefined) this.#encoded(method, request);
    if (this.#context.explain) yield this.#report(request);
    yield { type: "upstream-result", result: { content: [], effect: "none" } };
  }

  #tooLarge({ effect }: Exchange): GatewayError {
    const { tool, settings } = this.#environment.config;
    const limit = `${settings.maxResponseBytes} bytes`;
    const text = `${tool.name}: the upstream's answer is larger than the limit of ${limit}`;
    return new GatewayError("RESULT_TOO_LARGE", text, { effect, metadata: { tool: tool.name, limit } });
  }

  #report(request: JsonObject, exchange?: Exchange): UpstreamEvent {
    const { config, secrets } = this.#environment;
    const headers = metadataOf(config, secrets);
    return { type: "exchange", exchange: reportExchange(config, { headers, request, exchange }) };
  }
}

/** One message of a stream: a line of JSON, or the text that it is. */
function deltaText(value: JsonValue): string {
  return `${typeof value === "string" ? value : stringifyJson(value)}\n`;
}
