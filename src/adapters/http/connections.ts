import type { Socket } from "node:net";
import { Client, type Dispatcher } from "undici";
import type { Connector } from "./connector.ts";
import type { Proxy } from "./proxy.ts";

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
  readonly #connector: Connector;
  readonly #open = new Set<Connection>();
  readonly #closing = new Set<Promise<void>>();
  /** The one used last is taken first, so that a lull lets the others go. */
  readonly #idle: Connection[] = [];

  constructor(connector: Connector) {
    this.#connector = connector;
  }

  /** A connection for one request; `fresh`: one that was never used. */
  take(fresh = false): Connection {
    const idle = fresh ? undefined : this.#idle.pop();
    if (idle !== undefined) return idle;
    const connection = new Connection(this.#connector);
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
}

/** One connection, opened with its first request, and again where the upstream closed it in between. */
export class Connection {
  readonly #client: Client;
  readonly #origin: string;
  /** Proxy that requests are addressed to. */
  readonly #proxy: Proxy | undefined;
  #socket: Socket | undefined;
  #broken = false;
  #requests = 0;

  constructor(connector: Connector) {
    this.#proxy = connector.forwardingProxy;
    this.#origin = connector.origin;
    this.#client = new Client(connector.origin, {
      connect: (_options, callback) => {
        this.#requests = 0;
        // undici cancels an attempt to connect through what its connector returns, but does not declare it.
        return connector.open(callback, (socket) => this.#watch(socket));
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
    this.#client.dispatch(this.#proxy === undefined ? request : this.#forwarded(request, this.#proxy), handler);
  }

  /** To be called when a request goes out. */
  countRequest(): void {
    this.#requests += 1;
  }

  /** The request as a proxy takes it. Source: RFC 9112, section 3.2.2. */
  #forwarded(request: Dispatcher.DispatchOptions, { authorization }: Proxy): Dispatcher.DispatchOptions {
    const { path, headers } = request;
    const credentials = authorization === undefined ? [] : ["proxy-authorization", authorization];
    return {
      ...request,
      path: this.#origin + path,
      headers: [...(Array.isArray(headers) ? headers : []), ...credentials],
    };
  }

  #watch(socket: Socket): void {
    this.#socket = socket;
    this.#broken = false;
    socket.on("error", () => {
      this.#broken = true;
    });
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
