import type { Socket } from "node:net";
import { Client, type Dispatcher } from "undici";
import type { Connector } from "../shared/network/connector.ts";
import type { Proxy } from "../shared/network/proxy.ts";

/** Most bytes of an answer's header block. */
const MAX_HEADER_BYTES = 64 * 1024;

/** One connection, opened with its first request, and again where the upstream closed it in between. */
export class Connection {
  readonly connector: Connector;
  readonly #client: Client;
  readonly #origin: string;
  readonly #onClosed: () => void;
  /** Proxy that requests are addressed to. */
  readonly #proxy: Proxy | undefined;
  #socket: Socket | undefined;
  #broken = false;
  #requests = 0;

  /** `onClosed`: its socket is gone, whoever closed it. */
  constructor(connector: Connector, idleMs: number, onClosed: () => void) {
    this.connector = connector;
    this.#onClosed = onClosed;
    this.#proxy = connector.forwardingProxy;
    this.#origin = connector.origin;
    this.#client = new Client(connector.origin, {
      connect: (_options, callback) => {
        this.#requests = 0;
        // undici cancels an attempt to connect through what its connector returns, but does not declare it.
        return connector.open(callback, (socket) => this.#watch(socket));
      },
      pipelining: 1,
      keepAliveTimeout: idleMs,
      // An upstream that names a longer time of its own does not make it longer.
      keepAliveMaxTimeout: idleMs,
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
    // Later, since undici has to learn of it first.
    socket.once("close", () => queueMicrotask(this.#onClosed));
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
