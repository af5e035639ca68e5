import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import type { ExchangeFacts } from "../../core/call-observer.ts";
import type { Clock } from "../../core/clock.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import { endedCall } from "../shared/ended-call.ts";
import { brokenConnection, type LostCall, spentLimit, type TimeLimit } from "../shared/lost-call.ts";
import { News } from "../shared/news.ts";
import { Watchdog } from "../shared/watchdog.ts";
import type { Connection } from "./connection.ts";
import type { HttpConfig } from "./http-config.ts";
import type { OriginAccess } from "./origin-pools.ts";
import { type HttpRequest, sentTarget } from "./request.ts";
import type { RequestPayload } from "./streamed-body.ts";

/** Once as much waits for the reader, the upstream is read no further. */
const READ_AHEAD_BYTES = 64 * 1024;

/** The limit that each phase of a call spends. */
const SPENT_IN: Readonly<Record<LostCall["phase"], TimeLimit>> = {
  connecting: "connect",
  waiting: "read",
  answering: "idle",
};

/** Names in lower case; a header that came more than once has a list. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The beginning of an answer. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** From dispatch to here. */
  readonly firstByteMs: number;
}

/** The one value of a header; the first where it came more than once. */
export function headerOf(head: AnswerHead, name: string): string | undefined {
  const value = Object.hasOwn(head.headers, name) ? head.headers[name] : undefined;
  return typeof value === "string" ? value : value?.[0];
}

/** One request and its answer, read as fast as its one reader takes it. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #config: HttpConfig;
  readonly #access: OriginAccess;
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #watchdog: Watchdog<TimeLimit>;
  #phase: LostCall["phase"] = "connecting";
  readonly #sentAtMs: number;
  #connectMs: number | undefined;
  #head: AnswerHead | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  readonly #chunks: Buffer[] = [];
  #waitingBytes = 0;
  #receivedBytes = 0;
  #complete = false;
  #error: GatewayError | undefined;
  #lostBeforeAnswer = false;
  readonly #news = new News();

  constructor(options: ExchangeOptions) {
    this.#config = options.config;
    this.#access = options.access;
    this.#clock = options.clock;
    this.#connection = options.access.take(options.fresh);
    this.#watchdog = new Watchdog(options.clock, (limit) => this.#fail(spentLimit(this.#lost(), limit)));
    this.#sentAtMs = options.clock.monotonicMs();
    this.#watchdog.watch("connect", this.#config.settings.timeouts.connectMs - options.waitedMs);
    const { headers, body } = options.request;
    this.#connection.dispatch(
      { path: sentTarget(options.request), method: this.#config.method, headers, body: payloadOf(body) },
      this,
    );
  }

  /** What the call may have changed so far. */
  get effect(): Effect {
    return this.#config.readOnly || this.#phase === "connecting" ? "none" : "unknown";
  }

  /** What is known of it so far. */
  get facts(): Omit<ExchangeFacts, "requestBytes"> {
    const { firstByteMs, status: code } = this.#head ?? {};
    return { connectMs: this.#connectMs, firstByteMs, responseBytes: this.#receivedBytes, code };
  }

  /** The limit of time that runs at this moment, or would if the reader asked for more. */
  get spends(): TimeLimit {
    return SPENT_IN[this.#phase];
  }

  /** The connection was kept from an earlier call, and was gone before anything of an answer came. */
  get wasStale(): boolean {
    return this.#lostBeforeAnswer && this.#connection.reused;
  }

  /** The answer's beginning, or the error where none comes. */
  async head(): Promise<AnswerHead | GatewayError> {
    while (this.#head === undefined) {
      if (this.#error !== undefined) return this.#error;
      await this.#news.next();
    }
    return this.#head;
  }

  /** The next piece of the body; `undefined` at its end. Throws a GatewayError where it does not come to its end. */
  readonly read = async (): Promise<Buffer | undefined> => {
    while (true) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#waitingBytes -= chunk.length;
        return chunk;
      }
      if (this.#complete) return undefined;
      // What came before an error was read first.
      if (this.#error !== undefined) throw this.#error;
      this.#watchdog.watch("idle", this.#config.settings.timeouts.idleMs);
      const news = this.#news.next();
      this.#controller?.resume();
      await news;
      this.#watchdog.rest();
    }
  };

  /** Ends the exchange with the reason of a signal, closing its connection. */
  abort(reason: unknown): void {
    this.#fail(endedCall(reason, this.effect));
  }

  /** Frees everything; an answer that was not read to its end is given up with its connection. */
  close(): void {
    this.#watchdog[Symbol.dispose]();
    if (this.#complete || this.#error !== undefined) return;
    this.#fail(new GatewayError("CALL_CANCELLED", `${this.#config.tool.name}: the answer was given up`));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#connection.countRequest();
    this.#controller = controller;
    this.#phase = "waiting";
    this.#connectMs = this.#clock.monotonicMs() - this.#sentAtMs;
    this.#watchdog.watch("read", this.#config.settings.timeouts.readMs);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    // 103 Early Hints and their like come before the answer.
    if (status < 200) return;
    this.#phase = "answering";
    this.#head = { status, headers, firstByteMs: this.#clock.monotonicMs() - this.#sentAtMs };
    this.#watchdog.rest();
    this.#news.tell();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#error !== undefined) return;
    this.#chunks.push(chunk);
    this.#receivedBytes += chunk.length;
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= READ_AHEAD_BYTES) controller.pause();
    this.#news.tell();
  }

  onResponseEnd(): void {
    if (this.#error !== undefined) return;
    if (this.#connection.broken) {
      this.#fail(brokenConnection(this.#lost(), undefined));
      return;
    }
    this.#complete = true;
    this.#watchdog[Symbol.dispose]();
    this.#access.giveBack(this.#connection);
    this.#news.tell();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#lostBeforeAnswer = this.#head === undefined && this.#phase === "waiting" && this.#error === undefined;
    this.#fail(brokenConnection(this.#lost(), error));
  }

  #lost(): LostCall {
    return {
      tool: this.#config.tool.name,
      origin: this.#config.endpoint.origin,
      effect: this.effect,
      phase: this.#phase,
      receivedBytes: this.#receivedBytes,
      timeouts: this.#config.settings.timeouts,
    };
  }

  #fail(error: GatewayError): void {
    if (this.#complete || this.#error !== undefined) return;
    this.#error = error;
    this.#watchdog[Symbol.dispose]();
    this.#access.destroy(this.#connection);
    this.#news.tell();
  }
}

/** As undici takes it: an iterable is read as fast as it is sent. */
function payloadOf(body: RequestPayload | undefined): string | Readable | null {
  if (body === undefined || typeof body === "string") return body ?? null;
  return Readable.from(body.pieces(), { objectMode: false });
}

/** What an exchange needs. */
export interface ExchangeOptions {
  readonly config: HttpConfig;
  readonly access: OriginAccess;
  readonly clock: Clock;
  readonly request: HttpRequest;
  /** Use a connection that was never used. */
  readonly fresh: boolean;
  /** Time it took until a connection might be had; it counts as time to connect. */
  readonly waitedMs: number;
}
