import type { Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { openSocket, readyEvent, type SocketTarget, socketTarget } from "./socket.ts";

/** Most connections kept open for later calls. */
const MAX_IDLE = 256;

/** How long one is kept, unless the upstream asks for less. */
const KEEP_IDLE_MS = 4_000;

/** Most bytes of an answer's header block. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * The connections to one origin. Each carries one request at a time, so that cancelling a call closes its connection
 * and touches no other. A call takes one and gives it back, or destroys it; how many there are is up to who calls.
 */
export class Connections implements AsyncDisposable {
  readonly #origin: string;
  readonly #target: SocketTarget;
  readonly #open = new Set<Connection>();
  readonly #closing = new Set<Promise<void>>();
  /** The one used last is taken first, so that a lull lets the others go. */
  readonly #idle: Connection[] = [];
  /** TLS session of the connection made last. */
  #session: Buffer | undefined;

  constructor(origin: string) {
    this.#origin = origin;
    this.#target = socketTarget(origin);
  }

  /** A connection for one request; `fresh`: one that was never used. */
  take(fresh = false): Connection {
    const idle = fresh ? undefined : this.#idle.pop();
    if (idle !== undefined) return idle;
    const connection = new Connection(this.#origin, (callback) => this.#connect(callback));
    this.#open.add(connection);
    return connection;
  }

  /** Keeps a connection for another call. */
  giveBack(connection: Connection): void {
    if (this.#idle.length < MAX_IDLE) this.#idle.push(connection);
    else this.destroy(connection);
  }

  /** Closes a connection that was taken, at once, whatever it is doing. */
  destroy(connection: Connection): void {
    this.#open.delete(connection);
    const closing = connection.destroy().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Closes all of them. Resolves when no socket is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#idle.length = 0;
    for (const connection of this.#open) this.destroy(connection);
    await Promise.all(this.#closing);
  }

  #connect(callback: buildConnector.Callback): Socket {
    const socket = openSocket(this.#target, this.#session);
    socket.on("session", (session: Buffer) => {
      this.#session = session;
    });
    const onError = (error: Error): void => callback(error, null);
    socket.once("error", onError);
    socket.once(readyEvent(this.#target), () => {
      socket.off("error", onError);
      callback(null, socket);
    });
    return socket;
  }
}

/** One connection, opened with its first request, and again where the upstream closed it in between. */
export class Connection {
  readonly #client: Client;
  #socket: Socket | undefined;
  #broken = false;
  #requests = 0;

  constructor(origin: string, connect: (callback: buildConnector.Callback) => Socket) {
    this.#client = new Client(origin, {
      connect: (_options, callback) => {
        const socket = connect(callback);
        this.#socket = socket;
        this.#broken = false;
        this.#requests = 0;
        socket.on("error", () => {
          this.#broken = true;
        });
        // undici cancels an attempt to connect through what its connector returns, but does not declare it.
        return socket;
      },
      pipelining: 1,
      keepAliveTimeout: KEEP_IDLE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Exchange has its own limits of time, which are exact and follow the clock.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Whether the socket carried a request before the present one. */
  get reused(): boolean {
    return this.#requests > 1;
  }

  /**
   * Whether the connection broke. undici takes a reset for the end of an answer that has no length of its own, so
   * who reads such an answer has to ask.
   */
  get broken(): boolean {
    return this.#broken;
  }

  /** Sends a request. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(request, handler);
  }

  /** To be called when a request goes out. */
  countRequest(): void {
    this.#requests += 1;
  }

  /** Closes it. Resolves when its socket is gone; never rejects. */
  async destroy(): Promise<void> {
    // undici leaves an attempt to connect alone until it succeeds or fails.
    const closed = this.#socket === undefined ? undefined : closeSocket(this.#socket);
    await this.#client.destroy();
    await closed;
  }
}

function closeSocket(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
    socket.destroy();
  });
}
