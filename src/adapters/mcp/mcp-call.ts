import { SdkHttpError } from "@modelcontextprotocol/client";
import type { AdapterDeps } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent, UpstreamExchange, UpstreamResult } from "../../core/call.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Continuation, NeededInput } from "../../core/input-request.ts";
import { unknownState } from "../../core/input-required.ts";
import { type JsonObject, stringifyJson } from "../../core/json.ts";
import { endedCall } from "../shared/ended-call.ts";
import { NotConnected } from "../shared/network/http-channel.ts";
import { Watchdog } from "../shared/watchdog.ts";
import { type AskedEvent, CallEvents, logEvent, progressEvent } from "./call-events.ts";
import { isSessionLost, lostCall, refusedCall, tooLarge } from "./call-failure.ts";
import { CallQuestions } from "./call-questions.ts";
import { ASKING_CAPABILITIES, continuedParams } from "./input.ts";
import type { McpConfig } from "./mcp-config.ts";
import { filledParamHeaders, paramHeaders } from "./param-headers.ts";
import type { Parkable, ParkedCalls } from "./parked-calls.ts";
import { ANSWER_TOO_LARGE, ProgramLink } from "./program-link.ts";
import { callResult } from "./result.ts";
import { errorResult } from "./result-error.ts";
import type { ServerLife } from "./server-life.ts";
import type { RequestWatch, RpcAnswer } from "./server-link.ts";
import type { Session } from "./session.ts";
import { endedHow, failureOf } from "./start-failure.ts";

/** What calls of one server have in common. */
export interface CallSurroundings {
  readonly config: McpConfig;
  readonly deps: AdapterDeps;
  readonly life: ServerLife;
  /** Hides the server's secrets. */
  mask(text: string): string;
  readonly running: Set<McpCall>;
  readonly parked: ParkedCalls<McpCall>;
}

type TimeLimit = "read" | "idle";

/** Level from which the server is to tell of its doings. */
const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel";

/** What the gateway can do for the server in this very call. */
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";

/** One call of a server's tool. */
export class McpCall implements Parkable {
  readonly #around: CallSurroundings;
  readonly #call: ToolCall;
  readonly #questions = new CallQuestions();
  /** The caller's of this moment: one that goes on has another. */
  #context: CallContext;
  #run: AsyncGenerator<UpstreamEvent | AskedEvent, void, undefined> | undefined;
  #entered: Disposable | undefined;
  /** Waits for its caller, and nobody reads it. */
  #parked = false;
  readonly #stop = new AbortController();
  /** Aborted with words for the server. */
  readonly #cancel = new AbortController();
  readonly #watchdog: Watchdog<TimeLimit>;
  #sent = false;
  #answer: RpcAnswer | undefined;
  #bytes = 0;
  #sentAtMs = 0;
  #connectMs: number | undefined;
  #firstMs: number | undefined;
  #events: CallEvents | undefined;

  constructor(around: CallSurroundings, call: ToolCall, context: CallContext) {
    this.#around = around;
    this.#call = call;
    this.#context = context;
    this.#watchdog = new Watchdog(around.deps.clock, (limit) =>
      this.#end(this.#spent(limit), "the server was too slow"),
    );
  }

  /** Ends the call at once with this reason, and tells the server. A call that waits for its caller goes on waiting. */
  stop(reason: unknown): void {
    if (!this.#parked) this.#end(endedCall(reason, this.#effect, this.#spends), "the caller does not wait any more");
  }

  /** The limit that the call spends at this moment. */
  get #spends(): TimeLimit | "connect" {
    if (!this.#sent) return "connect";
    return this.#firstMs === undefined ? "read" : "idle";
  }

  /** Nobody will answer what the server asked. */
  abandon(reason: string): void {
    this.#parked = false;
    this.#questions.answer(new Map());
    this.#end(new GatewayError("CALL_CANCELLED", `${this.#name}: ${reason}`), reason);
    this.#over();
  }

  /** Runs the call. Throws GatewayError only. */
  events(): AsyncGenerator<UpstreamEvent, void, undefined> {
    this.#run = this.#call.validateOnly ? validated() : this.#exchanges();
    return this.#attend(() => undefined);
  }

  /** Goes on with a call that was parked, with what its caller answers. */
  resume({ answers }: Continuation, context: CallContext): AsyncGenerator<UpstreamEvent, void, undefined> {
    this.#parked = false;
    this.#context = context;
    return this.#attend(() => {
      this.#watchdog.watch("idle", this.#around.config.settings.timeouts.idleMs);
      this.#questions.answer(answers);
    });
  }

  /** Reads the call for the caller of this moment, to its end or to a question that its caller has to answer. */
  async *#attend(begin: () => void): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { signal } = this.#context;
    const { running, life } = this.#around;
    const onAbort = (): void => this.stop(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    running.add(this);
    this.#entered ??= life.enter();
    try {
      if (signal.aborted) onAbort();
      this.#stop.signal.throwIfAborted();
      begin();
      for (let step = await this.#run?.next(); step?.done === false; step = await this.#run?.next()) {
        if (step.value.type !== "asked") {
          yield step.value;
          continue;
        }
        const needsInput = this.#park();
        yield { type: "upstream-result", result: { content: [], needsInput, effect: this.#effect } };
        return;
      }
    } catch (error) {
      throw GatewayError.from(error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      running.delete(this);
      this.#tell();
      if (!this.#parked) this.#over();
    }
  }

  /** What came of the exchange, for who watches the call. */
  #tell(): void {
    if (this.#sentAtMs === 0) return;
    this.#context.observer?.exchanged({
      connectMs: this.#connectMs,
      firstByteMs: this.#firstMs,
      requestBytes: undefined,
      responseBytes: this.#bytes,
      code: this.#answer !== undefined && "error" in this.#answer ? this.#answer.error.code : undefined,
    });
  }

  #park(): NeededInput {
    this.#watchdog.rest();
    this.#parked = true;
    return { requests: this.#questions.requests, ...this.#around.parked.keep(this) };
  }

  /** Frees all that the call holds. Who leaves early ends it. */
  #over(): void {
    this.#watchdog[Symbol.dispose]();
    this.#cancel.abort("the caller does not wait any more");
    this.#run?.return().catch(() => undefined);
    this.#entered?.[Symbol.dispose]();
    this.#entered = undefined;
  }

  async *#exchanges(): AsyncGenerator<UpstreamEvent | AskedEvent, void, undefined> {
    const { life } = this.#around;
    for (let renewed = false; ; renewed = true) {
      const beganMs = this.#around.deps.clock.monotonicMs();
      const session = await life.use(this.#name, this.#stop.signal);
      this.#connectMs = this.#around.deps.clock.monotonicMs() - beganMs;
      this.#sent = false;
      const params = this.#params(session);
      const failure = yield* this.#exchange(session, params);
      if (failure !== undefined && !renewed && isSessionLost(failure, session)) {
        // The server refused it without a look, so that it can be sent once more.
        life.renew(session);
        continue;
      }
      const result = failure === undefined ? this.#result() : this.#failed(failure, session);
      if (this.#context.explain) yield this.#report(params, failure);
      yield { type: "upstream-result", result };
      return;
    }
  }

  /** Sends the request and passes on what comes before its answer; gives why none came. */
  async *#exchange(
    session: Session,
    params: JsonObject,
  ): AsyncGenerator<UpstreamEvent | AskedEvent, { readonly error: unknown } | undefined, undefined> {
    const events = new CallEvents();
    this.#events = events;
    const request = { method: "tools/call", params, headers: this.#headers(session) };
    let failure: { readonly error: unknown } | undefined;
    this.#sentAtMs = this.#around.deps.clock.monotonicMs();
    this.#watchdog.watch("read", this.#around.config.settings.timeouts.readMs);
    const done = session.request(request, this.#watch(events), this.#cancel.signal).then(
      () => events.end(),
      (error: unknown) => {
        failure = { error };
        events.end();
      },
    );
    for await (const event of events.read()) {
      this.#stop.signal.throwIfAborted();
      // One that came while another was answered may have been answered with it.
      if (event.type !== "asked" || this.#questions.waiting) yield event;
    }
    this.#stop.signal.throwIfAborted();
    await done;
    this.#watchdog.rest();
    if (failure !== undefined && this.#answer === undefined) return failure;
    return this.#answer === undefined ? { error: new Error("no answer came") } : undefined;
  }

  #watch(events: CallEvents): RequestWatch {
    const { idleMs } = this.#around.config.settings.timeouts;
    const alive = (): void => {
      this.#firstMs ??= this.#around.deps.clock.monotonicMs() - this.#sentAtMs;
      // One that waits for its caller has all the time that is kept for it.
      if (!this.#parked) this.#watchdog.watch("idle", idleMs);
    };
    return {
      caller: { id: this.#context.principal.id, mayBeAsked: this.#call.acceptsInput === true },
      declined: () => this.#questions.pass(),
      sent: () => {
        this.#sent = true;
      },
      progress: (params) => {
        alive();
        const event = progressEvent(params);
        if (event !== undefined) events.push(event);
      },
      log: (params) => {
        alive();
        events.push(logEvent(params));
      },
      asked: (question) => {
        alive();
        if (this.#call.acceptsInput !== true || !this.#around.parked.hasRoom) this.#questions.decline(question);
        else {
          this.#questions.keep(question);
          events.push({ type: "asked" });
        }
      },
      answered: (answer, bytes) => {
        alive();
        this.#answer = answer;
        this.#bytes = bytes;
      },
      lost: () => events.end(),
    };
  }

  #params(session: Session): JsonObject {
    const { callId, traceparent, tracestate, baggage, deadlineMs } = this.#context;
    return {
      name: this.#call.tool,
      arguments: this.#call.arguments,
      ...this.#continued(session),
      _meta: {
        progressToken: session.nextToken(callId),
        ...(traceparent === undefined ? {} : { traceparent }),
        ...(tracestate === undefined ? {} : { tracestate }),
        ...(baggage === undefined ? {} : { baggage }),
        ...(session.era === "modern" ? this.#modernMeta() : {}),
        // Nothing in the protocol tells a server how long its caller waits.
        ...(deadlineMs < 8.64e15 ? { "toolgate/deadline": new Date(deadlineMs).toISOString() } : {}),
      },
    };
  }

  #modernMeta(): JsonObject {
    // A server that asks learns from it whom it may ask.
    const capabilities = this.#call.acceptsInput === true ? ASKING_CAPABILITIES : {};
    return { [LOG_LEVEL_KEY]: "info", [CAPABILITIES_KEY]: capabilities };
  }

  /** What answers a question of the server's. @throws GatewayError CONTINUATION_NOT_FOUND. */
  #continued(session: Session): JsonObject {
    const { continuation } = this.#call;
    if (continuation === undefined) return {};
    // The call was parked and is gone, or the server was another one then.
    if (session.era !== "modern" || !continuation.state.startsWith("{")) throw unknownState(this.#name);
    return continuedParams(continuation);
  }

  /** Headers that repeat arguments, where the tool's schema asks for them. */
  #headers(session: Session): Readonly<Record<string, string>> {
    if (session.era !== "modern" || session.link instanceof ProgramLink) return {};
    const tool = this.#around.life.offer?.tools.find(({ name }) => name === this.#call.tool);
    const found = tool === undefined ? undefined : paramHeaders(tool.inputSchema);
    return found?.ok === true ? filledParamHeaders(found.headers, this.#call.arguments) : {};
  }

  #result(): UpstreamResult {
    const { config } = this.#around;
    const { maxResponseBytes } = config.settings;
    const answer = this.#answer ?? { result: null };
    const facts = { tool: this.#name, readOnly: this.#readOnly };
    const over = "error" in answer && answer.error.code === ANSWER_TOO_LARGE;
    if (over || this.#bytes > maxResponseBytes) throw tooLarge(this.#name, maxResponseBytes, this.#effect);
    const read = "error" in answer ? errorResult(answer.error, facts) : callResult(answer.result, facts);
    return this.#questions.judged(read, this.#name);
  }

  /** What a call comes to that the server did not answer. @throws GatewayError. */
  #failed({ error }: { readonly error: unknown }, session: Session): UpstreamResult {
    const { life, config, mask } = this.#around;
    if (error instanceof NotConnected) {
      life.failed(session, failureOf(error, session.link));
      throw lostCall({
        name: this.#name,
        effect: "none",
        sent: false,
        why: `no connection: ${error.message}`,
        cause: error,
      });
    }
    if (error instanceof SdkHttpError) return refusedCall(error, { tool: this.#name, readOnly: this.#readOnly });
    if (error instanceof GatewayError) {
      if (error.reason === "RESULT_TOO_LARGE")
        throw tooLarge(this.#name, config.settings.maxResponseBytes, this.#effect);
      throw error;
    }
    const why = endedHow(session.link, mask);
    if (why === undefined && config.target.kind === "remote") life.failed(session, failureOf(error, session.link));
    throw lostCall({
      name: this.#name,
      effect: this.#effect,
      sent: this.#sent,
      why: why ?? "the connection broke off before the answer",
      cause: error,
    });
  }

  get #name(): string {
    return this.#call.servedAs?.name ?? `${this.#around.config.tool.name}/${this.#call.tool}`;
  }

  get #readOnly(): boolean {
    return this.#call.servedAs?.readOnly ?? this.#around.config.tool.hints.readOnly === true;
  }

  get #effect(): Effect {
    return this.#readOnly || !this.#sent ? "none" : "unknown";
  }

  #end(error: GatewayError, words: string): void {
    if (!this.#stop.signal.aborted) this.#stop.abort(error);
    this.#watchdog.rest();
    this.#cancel.abort(words);
    this.#events?.end();
  }

  #spent(limit: TimeLimit): GatewayError {
    const limitMs = this.#around.config.settings.timeouts[`${limit}Ms`];
    const effect = this.#effect;
    const what = limit === "read" ? "gave no sign" : "stopped in the middle of the call";
    const end = effect === "unknown" ? "; it may have taken effect: find out before calling again" : "";
    return new GatewayError(
      "UPSTREAM_TIMEOUT",
      `${this.#name}: the server ${what} for ${limitMs} ms (timeout.${limit})${end}`,
      {
        effect,
        retryable: effect === "none",
        metadata: { tool: this.#name, limit },
      },
    );
  }

  #report(params: JsonObject, failure: { readonly error: unknown } | undefined): UpstreamEvent {
    const { target } = this.#around.config;
    const status = failure?.error instanceof SdkHttpError ? failure.error.status : undefined;
    const exchange: UpstreamExchange = {
      method: "tools/call",
      url: target.kind === "remote" ? target.url : [target.command, ...target.args].join(" "),
      requestHeaders: [],
      requestBody: stringifyJson(params).slice(0, 8_192).toWellFormed(),
      status,
      responseHeaders: [],
      firstByteMs: this.#firstMs,
    };
    return { type: "exchange", exchange };
  }
}

/** Whether a call can be made at all was looked at before it came here. */
async function* validated(): AsyncGenerator<UpstreamEvent, void, undefined> {
  yield { type: "upstream-result", result: { content: [], effect: "none" } };
}
