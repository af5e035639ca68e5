import type { LookupFunction, Socket } from "node:net";
import { Pool } from "undici";
import type { Clock } from "../../../core/clock.ts";
import { ConnectProblem, connectProblem } from "./connect-problem.ts";
import { Connector } from "./connector.ts";
import type { EgressGuard } from "./egress.ts";
import { type ProxyEnvironment, routeTo } from "./proxy.ts";

/** Most bytes of an answer's header block. */
const MAX_HEADER_BYTES = 64 * 1024;

/** How long an idle connection is kept. */
const KEEP_ALIVE_MS = 30_000;

/** Most bytes of an answer that refuses. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** Redirects within the origin that one request follows. */
const MAX_REDIRECTS = 3;

/** The way to remote servers. */
export interface ChannelNetwork {
  /** Finds the addresses of a name. */
  readonly lookup: LookupFunction;
  /** Where proxies are taken from. */
  readonly environment: ProxyEnvironment;
}

/** What a channel is made from. */
export interface ChannelOptions extends ChannelNetwork {
  readonly origin: string;
  /** Says where connections may lead. */
  readonly guard: EgressGuard;
  readonly maxConnections: number;
  readonly connectMs: number;
  readonly clock: Clock;
}

/** One request. */
export interface ChannelRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** The answer, whose body is read as fast as it is taken. */
export interface ChannelAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  /** Pieces of the body. Leaving it closes the connection. */
  readonly body: AsyncIterable<Buffer>;
  /** All of a small body as text; what is beyond the limit is dropped. */
  text(): Promise<string>;
  /** Reads nothing more. */
  drop(): void;
}

/** No connection was made, so nothing was sent. */
export class NotConnected extends Error {
  /** What to do about it; empty where the address says all. */
  readonly mend: string;

  constructor(cause: unknown) {
    const error = cause instanceof Error ? cause : undefined;
    super(connectProblem(error), { cause });
    this.name = "NotConnected";
    this.mend = error instanceof ConnectProblem ? error.mend : "";
  }
}

/** Connections to one origin, and requests over them. */
export class HttpChannel implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #connector: Connector;
  readonly #options: ChannelOptions;

  constructor(options: ChannelOptions) {
    this.#options = options;
    const { origin, guard, lookup, environment } = options;
    this.#connector = new Connector({ origin, route: routeTo(origin, environment), guard, lookup });
    this.#pool = new Pool(origin, {
      connect: (_options, callback) => this.#connect(callback),
      connections: options.maxConnections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // A stream of events may be silent for as long as it likes; calls have limits of their own.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * Sends a request. Redirects are followed within the origin and with the same method alone.
   *
   * @throws NotConnected; the signal's reason; what broke the exchange.
   */
  async send(request: ChannelRequest): Promise<ChannelAnswer> {
    let { target } = request;
    for (let followed = 0; ; followed += 1) {
      const answer = await this.#exchange({ ...request, target });
      const next = followed < MAX_REDIRECTS ? this.#redirectOf(answer, target) : undefined;
      if (next === undefined) return answer;
      answer.drop();
      target = next;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }

  #connect(callback: (...result: [Error, null] | [null, Socket]) => void): unknown {
    const { clock, connectMs } = this.#options;
    let socket: Socket | undefined;
    const limit = clock.after(connectMs, () => {
      const text = `no connection within ${connectMs} ms (timeout.connect)`;
      socket?.destroy(new ConnectProblem("CONNECT_TIMEOUT", text, "Look at the server, or raise `timeout.connect`."));
    });
    return this.#connector.open(
      (...[error, ready]) => {
        limit[Symbol.dispose]();
        if (ready === null) callback(new NotConnected(error), null);
        else callback(null, ready);
      },
      (opened) => {
        socket = opened;
      },
    );
  }

  async #exchange({ method, target, headers, body, signal }: ChannelRequest): Promise<ChannelAnswer> {
    const proxy = this.#connector.forwardingProxy;
    const credentials = proxy?.authorization === undefined ? {} : { "proxy-authorization": proxy.authorization };
    const answer = await this.#pool.request({
      method,
      path: proxy === undefined ? target : this.#options.origin + target,
      headers: { "accept-encoding": "identity", ...headers, ...credentials },
      ...(body === undefined ? {} : { body }),
      signal,
    });
    // Whoever stops reading closes it, and is not to hear of it once more.
    answer.body.on("error", () => undefined);
    const stream = answer.body as AsyncIterable<Buffer>;
    return {
      status: answer.statusCode,
      header: (name) => [answer.headers[name]].flat()[0],
      body: stream,
      text: () => beginning(stream),
      drop: () => void answer.body.destroy(),
    };
  }

  #redirectOf(answer: ChannelAnswer, from: string): string | undefined {
    if (answer.status !== 307 && answer.status !== 308) return undefined;
    const { origin } = this.#options;
    const location = answer.header("location");
    const to =
      location !== undefined && URL.canParse(location, origin + from) ? new URL(location, origin + from) : undefined;
    return to?.origin === origin ? to.pathname + to.search : undefined;
  }
}

async function beginning(body: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= MAX_REFUSAL_BYTES) break;
  }
  return Buffer.concat(pieces).toString("utf8", 0, MAX_REFUSAL_BYTES);
}
