import { type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
import type { AttemptTimeouts } from "../../core/adapter.ts";
import type { ExchangeFacts } from "../../core/call-observer.ts";
import type { Clock } from "../../core/clock.ts";
import type { Effect } from "../../core/effect.ts";
import type { GatewayError } from "../../core/errors.ts";
import { endedCall } from "../shared/ended-call.ts";
import { brokenConnection, type LostCall, spentLimit, type TimeLimit } from "../shared/lost-call.ts";
import { News } from "../shared/news.ts";
import { Watchdog } from "../shared/watchdog.ts";
import type { Connection } from "./connection.ts";
import { BadMessage, MessageReader } from "./message-reader.ts";
import { type Fields, fieldOf, type GrpcStatus, statusIn, statusOfHttp } from "./status.ts";

/** Once as much waits for the reader, the upstream is read no further. */
const READ_AHEAD_BYTES = 64 * 1024;

/** Longest wait for a sign of life of a connection that a limit of time was spent on. */
const CHECK_MS = 5_000;

/** What is not said is not known. */
const NO_STATUS: GrpcStatus = { name: "UNKNOWN", code: 2, message: "", details: { violations: [] } };

/** What an exchange needs. */
export interface ExchangeOptions {
  readonly connection: Connection;
  readonly headers: OutgoingHttpHeaders;
  /** The request message, framed. */
  readonly frame: Buffer;
  readonly clock: Clock;
  readonly timeouts: AttemptTimeouts;
  /** Most bytes of one message of the answer. */
  readonly maxMessageBytes: number;
  readonly tool: string;
  readonly address: string;
  readonly readOnly: boolean;
  /** How long it took until there was a connection. */
  readonly connectMs: number;
}

/** One request and its answer over a connection, read as fast as its one reader takes it. */
export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #watchdog: Watchdog<TimeLimit>;
  readonly #reader: MessageReader;
  readonly #sentAtMs: number;
  readonly #messages: Buffer[] = [];
  #stream: ClientHttp2Stream | undefined;
  #waitingBytes = 0;
  #receivedBytes = 0;
  #head: Fields | undefined;
  #trailers: Fields = {};
  #firstByteMs: number | undefined;
  #status: GrpcStatus | undefined;
  #error: GatewayError | BadMessage | undefined;
  #refused = false;
  #closed = false;
  readonly #news = new News();

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { clock, connection, headers, frame, timeouts } = options;
    this.#sentAtMs = clock.monotonicMs();
    this.#reader = new MessageReader(options.maxMessageBytes);
    this.#watchdog = new Watchdog(clock, (limit) => this.#spent(limit));
    try {
      this.#stream = this.#watched(connection.request(headers));
      this.#stream.end(frame);
      this.#watchdog.watch("read", timeouts.readMs);
    } catch {
      // The connection ended just now, and the request never left.
      this.#refuse();
    }
  }

  /** Surely nobody looked at the request, so that it may be sent again. */
  get refused(): boolean {
    return this.#refused;
  }

  /** What the call may have changed so far. */
  get effect(): Effect {
    return this.#options.readOnly || this.#refused ? "none" : "unknown";
  }

  get facts(): Omit<ExchangeFacts, "requestBytes"> {
    const code = this.#status?.http ?? this.#status?.code;
    return {
      connectMs: this.#options.connectMs,
      firstByteMs: this.#firstByteMs,
      responseBytes: this.#receivedBytes,
      code,
    };
  }

  /** The limit of time that runs at this moment. */
  get spends(): TimeLimit {
    return this.#head === undefined ? "read" : "idle";
  }

  /** Headers of the answer, as far as they came. */
  get head(): Fields {
    return this.#head ?? {};
  }

  /** How the answer ended. To be asked once {@link read} has come to its end. */
  get end(): GrpcStatus {
    return this.#status ?? NO_STATUS;
  }

  /** Resolves when something came, or nothing will. */
  async begun(): Promise<void> {
    while (this.#head === undefined && !this.#closed) await this.#news.next();
  }

  /**
   * The next message; `undefined` at the end, where {@link end} is known or the call was {@link refused}.
   *
   * @throws GatewayError where the answer does not come to its end; BadMessage.
   */
  async read(): Promise<Buffer | undefined> {
    while (true) {
      const message = this.#messages.shift();
      if (message !== undefined) {
        this.#waitingBytes -= message.length;
        return message;
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#closed) return undefined;
      if (this.#head !== undefined) this.#watchdog.watch("idle", this.#options.timeouts.idleMs);
      const news = this.#news.next();
      this.#stream?.resume();
      await news;
      if (this.#head !== undefined) this.#watchdog.rest();
    }
  }

  /** Ends the exchange with the reason of a signal. */
  abort(reason: unknown): void {
    this.#finish(endedCall(reason, this.effect, this.spends));
  }

  /** Frees everything; an answer that was not read to its end is given up. */
  close(): void {
    this.#finish(undefined);
    this.#watchdog[Symbol.dispose]();
  }

  #watched(stream: ClientHttp2Stream): ClientHttp2Stream {
    stream.on("response", (head) => this.#onHead(head));
    stream.on("trailers", (trailers: Fields) => {
      this.#trailers = trailers;
    });
    stream.on("data", (piece: Buffer) => this.#onData(piece));
    stream.once("end", () => {
      // Without a status, what `close` brings is waited for.
      if (this.#told() !== undefined) this.#onEnd(undefined);
    });
    let failure: Error | undefined;
    stream.on("error", (error: Error) => {
      failure = error;
    });
    stream.once("close", () => {
      this.#onEnd(failure);
      this.#options.connection.release();
    });
    return stream;
  }

  #onHead(head: Fields): void {
    const { connection, clock } = this.#options;
    connection.heard();
    this.#head = head;
    this.#firstByteMs = clock.monotonicMs() - this.#sentAtMs;
    this.#watchdog.rest();
    const http = Number(fieldOf(head, ":status"));
    const media = (fieldOf(head, "content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
    // A status in the headers counts, whatever else they say.
    if (statusIn(head) === undefined && (http !== 200 || !/^application\/grpc(?:$|\+)/.test(media))) {
      this.#status = statusOfHttp(http, media);
      this.#finish(undefined);
    }
    this.#news.tell();
  }

  #onData(piece: Buffer): void {
    this.#options.connection.heard();
    if (this.#closed) return;
    this.#receivedBytes += piece.length;
    try {
      for (const message of this.#reader.take(piece)) {
        this.#messages.push(message);
        this.#waitingBytes += message.length;
      }
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      this.#finish(error);
      return;
    }
    if (this.#waitingBytes >= READ_AHEAD_BYTES) this.#stream?.pause();
    if (this.#messages.length > 0) this.#news.tell();
  }

  /** Nothing comes any more. */
  #onEnd(failure: Error | undefined): void {
    if (this.#closed) return;
    const status = this.#told();
    if (status !== undefined && !(status.code === 0 && this.#reader.isWithin)) {
      this.#status = status;
      this.#finish(undefined);
      return;
    }
    if (this.#wasUntouched) this.#refuse();
    else this.#finish(this.#lost(failure ?? resetOf(this.#stream)));
  }

  /** The status that the server sent, as far as it came. */
  #told(): GrpcStatus | undefined {
    return statusIn(this.#trailers) ?? statusIn(this.#head ?? {});
  }

  /** Surely nobody took the stream up. */
  get #wasUntouched(): boolean {
    const stream = this.#stream;
    if (this.#head !== undefined) return false;
    const refused = stream?.rstCode === constants.NGHTTP2_REFUSED_STREAM;
    return refused || this.#options.connection.neverTaken(stream?.id);
  }

  #refuse(): void {
    this.#refused = true;
    this.#finish(undefined);
    if (this.#stream === undefined) this.#options.connection.release();
  }

  #spent(limit: TimeLimit): void {
    this.#finish(spentLimit(this.#facts(), limit));
    // Whether the server is slow or gone is for the next call to know.
    void this.#options.connection.check(CHECK_MS);
  }

  #lost(failure: Error): GatewayError {
    return brokenConnection(this.#facts(), failure);
  }

  #facts(): LostCall {
    const { tool, address, timeouts } = this.#options;
    return {
      tool,
      origin: address,
      effect: this.effect,
      phase: this.#head === undefined ? "waiting" : "answering",
      receivedBytes: this.#receivedBytes,
      timeouts,
    };
  }

  #finish(error: GatewayError | BadMessage | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#error = error;
    this.#watchdog[Symbol.dispose]();
    const stream = this.#stream;
    if (stream !== undefined && !stream.readableEnded) stream.close(constants.NGHTTP2_CANCEL);
    // What is left is dropped, so that the stream comes to its end.
    stream?.resume();
    this.#news.tell();
  }
}

/** How the other side ended a stream that has no status. */
function resetOf(stream: ClientHttp2Stream | undefined): Error {
  const reset = stream?.rstCode ?? 0;
  const code = reset === constants.NGHTTP2_NO_ERROR ? "STATUS_MISSING" : `RST_STREAM_${reset}`;
  return Object.assign(new Error("the stream ended without a status"), { code });
}
