import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import { ConnectProblem, codeOf } from "../shared/network/connect-problem.ts";

/** What one call may have under way before it has to be read. */
const STREAM_WINDOW_BYTES = 256 * 1024;

/** What all calls of a connection together may have under way, so that a slow reader holds up no other. */
const SESSION_WINDOW_BYTES = 8 * 1024 * 1024;

/** Most bytes of an answer's headers, and of its trailers. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Megabytes that node may hold for one connection before it refuses new calls. */
const SESSION_MEMORY_MB = 64;

/** Most calls at a time over one connection, where the server would take more. */
const MAX_STREAMS = 256;

/** A connection that was silent for longer is asked whether it is there before it gets a call. */
const SILENT_MS = 10_000;

/** What a connection needs. */
export interface ConnectionOptions {
  /** Connected, with TLS where there is any. */
  readonly socket: Socket;
  /** For `:authority` and `:scheme`. */
  readonly origin: string;
  readonly clock: Clock;
  /** How long it is kept without a call. */
  readonly idleMs: number;
  /** It takes more calls than before, or none any more. */
  changed(): void;
}

/** One connection that speaks HTTP/2, for many calls at a time. */
export class Connection {
  readonly #session: ClientHttp2Session;
  readonly #options: ConnectionOptions;
  readonly #closed: Promise<void>;
  #reserved = 0;
  #leaving = false;
  /** Last stream that the server takes up, once it said goodbye. */
  #lastStream = Number.POSITIVE_INFINITY;
  #heardMs: number;
  #checking: Promise<boolean> | undefined;
  #idle: Disposable | undefined;

  private constructor(session: ClientHttp2Session, options: ConnectionOptions) {
    this.#session = session;
    this.#options = options;
    this.#heardMs = options.clock.monotonicMs();
    this.#closed = new Promise((resolve) => {
      session.once("close", () => {
        this.#idle?.[Symbol.dispose]();
        options.changed();
        resolve();
      });
    });
    // Its streams tell what became of them.
    session.on("error", () => undefined);
    session.on("goaway", (_code: number, lastStream: number) => {
      this.#lastStream = lastStream;
      this.#leave();
    });
    session.on("remoteSettings", () => options.changed());
  }

  /**
   * Begins to speak HTTP/2. Resolves once the server did: who does not speak it was asked nothing yet.
   *
   * @throws ConnectProblem, or what broke the connection. The socket is closed then.
   */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const session = connect(options.origin, {
      createConnection: () => options.socket,
      settings: {
        enablePush: false,
        initialWindowSize: STREAM_WINDOW_BYTES,
        maxHeaderListSize: MAX_HEADER_BYTES,
      },
      maxSessionMemory: SESSION_MEMORY_MB,
    });
    const connection = new Connection(session, options);
    await new Promise<void>((resolve, reject) => {
      session.once("connect", () => session.setLocalWindowSize(SESSION_WINDOW_BYTES));
      session.once("remoteSettings", () => resolve());
      session.once("error", (cause) => reject(notHttp2(cause)));
      session.once("close", () => reject(notHttp2(undefined)));
    });
    connection.#rest();
    return connection;
  }

  /** Whether another call may go out over it. */
  get isFree(): boolean {
    return this.isOpen && this.#reserved < this.#limit;
  }

  /** Whether calls may go out over it, now or later. */
  get isOpen(): boolean {
    return !this.#leaving && !this.#session.closed && !this.#session.destroyed;
  }

  /** Whether it was silent for so long that nobody knows whether it is still there. */
  get isSilent(): boolean {
    return this.#options.clock.monotonicMs() - this.#heardMs > SILENT_MS;
  }

  /** Keeps room for one call, which {@link release} gives back. */
  reserve(): void {
    this.#reserved += 1;
    this.#idle?.[Symbol.dispose]();
    this.#idle = undefined;
  }

  /** A call is over. */
  release(): void {
    this.#reserved -= 1;
    this.#rest();
    this.#options.changed();
  }

  /** Something came from the server. */
  heard(): void {
    this.#heardMs = this.#options.clock.monotonicMs();
  }

  /** Whether the server surely did not look at a stream, since it had said goodbye before. */
  neverTaken(stream: number | undefined): boolean {
    return stream === undefined || stream > this.#lastStream;
  }

  /** Begins a call. @throws what node does where the connection ended meanwhile. */
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    return this.#session.request(headers);
  }

  /** Asks the server for a sign of life; where none comes within `limitMs`, the connection is closed. */
  check(limitMs: number): Promise<boolean> {
    this.#checking ??= this.#ping(limitMs).finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** Ends it at once, with all calls over it. Resolves when the socket is closed. */
  destroy(): Promise<void> {
    this.#idle?.[Symbol.dispose]();
    this.#session.destroy();
    // A session that was closed before waits for its peer to close the socket too, and a peer need not.
    this.#options.socket.destroy();
    return this.#closed;
  }

  get #limit(): number {
    return Math.min(this.#session.remoteSettings.maxConcurrentStreams ?? MAX_STREAMS, MAX_STREAMS);
  }

  /** Where no call is left: ends it, now or after a time. */
  #rest(): void {
    if (this.#reserved > 0) return;
    this.#idle?.[Symbol.dispose]();
    this.#idle = this.isOpen ? this.#options.clock.after(this.#options.idleMs, () => this.#leave()) : undefined;
    if (this.#leaving) void this.destroy();
  }

  /** Takes no more calls, and ends with the last one. */
  #leave(): void {
    this.#leaving = true;
    this.#options.changed();
    this.#rest();
  }

  #ping(limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const limit = this.#options.clock.after(limitMs, () => {
        this.#session.destroy();
        resolve(false);
      });
      const answered = (alive: boolean): void => {
        limit[Symbol.dispose]();
        if (alive) this.heard();
        resolve(alive);
      };
      void this.#closed.then(() => answered(false));
      if (!this.isOpen || !this.#session.ping((error) => answered(error === null))) answered(false);
    });
  }
}

function notHttp2(cause: unknown): Error {
  if (cause instanceof Error && !(codeOf(cause) ?? "ERR_HTTP2").startsWith("ERR_HTTP2")) return cause;
  return new ConnectProblem(
    "NO_HTTP2",
    "it does not speak HTTP/2, or closed the connection at once",
    "Name the port of the gRPC server in `grpc.address`, with `https:` where it wants TLS and `http:` where it does not.",
  );
}
