import type { CallContext, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SecretSource } from "../../core/secrets.ts";
import type { Slot } from "../../core/slots.ts";
import type { AccessTokens } from "../shared/access-tokens.ts";
import { endedCall } from "../shared/ended-call.ts";
import { type Answer, deltaReader, isStreamed, readBeginning, readResult } from "./answer.ts";
import { decodedBody } from "./decompress.ts";
import { type AnswerHead, Exchange, headerOf } from "./exchange.ts";
import { reportExchange } from "./exchange-report.ts";
import { effectOf, MAX_FAILURE_BYTES, statusFailure, unreadableFailure } from "./failure.ts";
import type { HttpConfig } from "./http-config.ts";
import { parseMediaType } from "./media-type.ts";
import type { OriginAccess } from "./origin-pools.ts";
import { poolExhausted } from "./pool-refusal.ts";
import { redirectOf } from "./redirects.ts";
import { assembleRequest, type HttpRequest, withDeadline } from "./request.ts";
import { secretRefsOfCall } from "./secret-use.ts";
import { signRequest } from "./sign-request.ts";
import { UnreadableAnswer } from "./unreadable-answer.ts";

/** What the calls of one tool have in common. */
export interface HttpCallEnvironment {
  readonly config: HttpConfig;
  readonly access: OriginAccess;
  readonly tokens: AccessTokens | undefined;
  readonly clock: Clock;
  readonly secrets: SecretSource;
  /** The calls that run, each from its first event to its last. */
  readonly running: Set<HttpCall>;
}

/** One call of an HTTP tool. */
export class HttpCall {
  readonly #environment: HttpCallEnvironment;
  readonly #call: ToolCall;
  readonly #context: CallContext;
  /** Ends the wait for a connection. */
  readonly #waiting = new AbortController();
  #slot: Slot | undefined;
  #exchange: Exchange | undefined;
  #sentBytes = 0;
  #stopped: GatewayError | undefined;

  constructor(environment: HttpCallEnvironment, call: ToolCall, context: CallContext) {
    this.#environment = environment;
    this.#call = call;
    this.#context = context;
  }

  /** Ends the call at once with this reason, closing its connection. */
  stop(reason: unknown): void {
    this.#stopped ??= endedCall(reason, this.#exchange?.effect ?? "none", this.#exchange?.spends ?? "connect");
    this.#exchange?.abort(this.#stopped);
    this.#waiting.abort(this.#stopped);
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
      await this.#secretsAtHand();
      const token = this.#call.validateOnly ? undefined : await this.#token();
      const request = this.#assemble(token);
      if (this.#call.validateOnly) {
        yield* this.#validated(this.#sign(request));
        return;
      }
      await this.#wait();
      const answer = yield* this.#answer(request, token);
      try {
        if (isStreamed(answer)) {
          const deltas = deltaReader(answer);
          for (let texts = await deltas.next(); texts !== undefined; texts = await deltas.next()) {
            for (const text of texts) yield this.#delta(text);
          }
        }
        yield { type: "upstream-result", result: await this.#result(answer) };
      } catch (error) {
        if (!(error instanceof UnreadableAnswer)) throw error;
        yield { type: "upstream-result", result: unreadableFailure(answer, error) };
      } finally {
        answer.body[Symbol.dispose]();
      }
    } catch (error) {
      throw GatewayError.from(error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      running.delete(this);
      this.#exchange?.close();
      this.#tell();
      this.#slot?.[Symbol.dispose]();
    }
  }

  /** What came of the last exchange, for who watches the call. */
  #tell(): void {
    const exchange = this.#exchange;
    if (exchange !== undefined) this.#context.observer?.exchanged({ ...exchange.facts, requestBytes: this.#sentBytes });
  }

  /** Some secrets take time to get. */
  #secretsAtHand(): Promise<void> | undefined {
    const { config, secrets } = this.#environment;
    return secrets.fresh(secretRefsOfCall(config, this.#context.principal.roles), this.#waiting.signal);
  }

  /** The token of the tool's client. @throws GatewayError naming the tool. */
  async #token(): Promise<string | undefined> {
    const { tokens, config } = this.#environment;
    const { name } = config.tool;
    try {
      return await tokens?.token(this.#waiting.signal);
    } catch (error) {
      if (this.#stopped !== undefined || !(error instanceof GatewayError)) throw this.#stopped ?? error;
      throw new GatewayError(error.reason, `${name}: ${error.message}`, {
        modelMessage: `${name}: the gateway cannot identify itself to the upstream; its operator must mend it`,
        metadata: { ...error.metadata, tool: name },
        cause: error,
      });
    }
  }

  /** Waits until the call may have a connection; it has one at a time then, until it is over. */
  async #wait(): Promise<void> {
    const { config, access } = this.#environment;
    const { connectMs } = config.settings.timeouts;
    const names = { tool: config.tool.name, origin: config.endpoint.origin, connectMs };
    const taken = access.slot({
      signal: this.#waiting.signal,
      maxWaitMs: connectMs,
      refused: (refusal) => poolExhausted(names, refusal),
    });
    this.#slot = taken instanceof Promise ? await taken : taken;
  }

  #assemble(token: string | undefined): HttpRequest {
    if (this.#stopped !== undefined) throw this.#stopped;
    const { config, secrets } = this.#environment;
    return assembleRequest(config, this.#call.arguments, {
      secrets,
      traceparent: this.#context.traceparent,
      tracestate: this.#context.tracestate,
      baggage: this.#context.baggage,
      roles: this.#context.principal.roles,
      token,
    });
  }

  async *#validated(request: HttpRequest): AsyncGenerator<UpstreamEvent, void, undefined> {
    if (this.#context.explain) yield this.#report(request);
    yield { type: "upstream-result", result: { content: [], effect: "none" } };
  }

  /** Sends the request, and again where the answer redirects it; shows each exchange of a call to be explained. */
  async *#answer(first: HttpRequest, token: string | undefined): AsyncGenerator<UpstreamEvent, Answer, undefined> {
    let request = first;
    let mayEnd = token;
    for (let followed = 0; ; followed++) {
      const { exchange, sent, head } = await this.#begin(request);
      if (this.#context.explain) yield this.#report(sent, head);
      if (head instanceof GatewayError) throw head;
      if (head.status === 401 && mayEnd !== undefined) {
        // A token may end before its time. What is refused has not run, so that it is sent again, once.
        this.#environment.tokens?.forget(mayEnd);
        mayEnd = undefined;
        await readBeginning(exchange.read, MAX_FAILURE_BYTES);
        exchange.close();
        request = { ...this.#assemble(await this.#token()), target: request.target };
        continue;
      }
      const redirect = redirectOf(this.#environment.config, head, request.target, followed);
      if (redirect?.target === undefined) return this.#open(exchange, head, redirect?.refused);
      // Read to its end, the connection can be used again.
      await readBeginning(exchange.read, MAX_FAILURE_BYTES);
      exchange.close();
      request = { ...request, target: redirect.target };
    }
  }

  /** Sends the request and waits for the answer's beginning. */
  async #begin(request: HttpRequest): Promise<BegunExchange> {
    const sent = this.#sign(request);
    const exchange = this.#send(sent, false);
    const head = await exchange.head();
    if (this.#stopped !== undefined) return { exchange, sent, head: this.#stopped };
    if (!exchange.wasStale || !this.#environment.config.readOnly) return { exchange, sent, head };
    // The upstream closed a kept connection just as it was used. What changes nothing is safe to send again.
    const sentAgain = this.#sign(request);
    const second = this.#send(sentAgain, true);
    return { exchange: second, sent: sentAgain, head: await second.head() };
  }

  /** The request as it goes out now. Throws where the call was stopped. */
  #sign(request: HttpRequest): HttpRequest {
    if (this.#stopped !== undefined) throw this.#stopped;
    const { config, clock } = this.#environment;
    const timed = withDeadline(config, request, this.#context.deadlineMs - clock.now());
    return signRequest(config, timed, this.#environment);
  }

  #send(request: HttpRequest, fresh: boolean): Exchange {
    const { config, access, clock } = this.#environment;
    const waitedMs = this.#slot?.waitedMs ?? 0;
    const { body = "" } = request;
    if (this.#context.observer !== undefined) {
      this.#sentBytes = typeof body === "string" ? Buffer.byteLength(body) : body.length;
    }
    this.#exchange = new Exchange({ config, access, clock, request, fresh, waitedMs });
    return this.#exchange;
  }

  /** A piece of output. What came before the call was stopped is not given on after it. */
  #delta(text: string): UpstreamEvent {
    if (this.#stopped !== undefined) throw this.#stopped;
    return { type: "upstream-delta", text };
  }

  #report(request: HttpRequest, head?: AnswerHead | GatewayError): UpstreamEvent {
    const answered = head instanceof GatewayError ? undefined : head;
    return { type: "exchange", exchange: reportExchange(this.#environment.config, request, answered) };
  }

  #open(exchange: Exchange, head: AnswerHead, redirectRefused: string | undefined): Answer {
    const { config } = this.#environment;
    return {
      config,
      head,
      media: parseMediaType(headerOf(head, "content-type")),
      effect: effectOf(head.status, config.readOnly),
      body: decodedBody(exchange.read, headerOf(head, "content-encoding")),
      redirectRefused,
    };
  }

  async #result(answer: Answer): Promise<UpstreamResult> {
    const { head, effect, body } = answer;
    if (head.status >= 300) {
      const beginning = await readBeginning(body.read, MAX_FAILURE_BYTES);
      return statusFailure(answer, beginning, this.#environment.clock);
    }
    if (isStreamed(answer)) return { content: [], upstreamCode: head.status, effect };
    return readResult(answer, this.#context.overflow);
  }
}

interface BegunExchange {
  readonly exchange: Exchange;
  /** The request as it went out. */
  readonly sent: HttpRequest;
  /** The error where no answer came. */
  readonly head: AnswerHead | GatewayError;
}
