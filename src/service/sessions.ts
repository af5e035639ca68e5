import type { ServerHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import type { Clock } from "../core/clock.ts";
import { type ConnectionAge, limitAge } from "./connection-age.ts";

/** When to ask a peer for a sign of life, how long to wait for it, and how old its connection may become. */
export interface Keepalive extends ConnectionAge {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** An HTTP/2 connection and the socket below it. */
interface Connection {
  readonly session: ServerHttp2Session;
  readonly socket: Duplex;
}

/** The HTTP/2 connections of a listener: Node's server does not know them. */
export class Sessions {
  readonly #connections = new Set<Connection>();
  readonly #keepalive: Keepalive;
  readonly #clock: Clock;
  #closing = false;

  constructor(keepalive: Keepalive, clock: Clock) {
    this.#keepalive = keepalive;
    this.#clock = clock;
  }

  add(session: ServerHttp2Session, socket: Duplex): void {
    const connection = { session, socket };
    this.#connections.add(connection);
    const keepalive = keepAlive(connection, this.#keepalive, this.#clock);
    limitAge(session, this.#keepalive, this.#clock, {
      leave: () => session.close(),
      cut: () => cut(connection),
    });
    session.once("close", () => {
      keepalive[Symbol.dispose]();
      this.#connections.delete(connection);
    });
    if (this.#closing) session.close();
  }

  /** GOAWAY on each, now and from now on: no new streams, the open ones go on. */
  close(): void {
    this.#closing = true;
    for (const { session } of this.#connections) session.close();
  }

  destroy(): void {
    for (const connection of this.#connections) cut(connection);
  }
}

/** Node keeps the socket of a destroyed session until what was written to it is read: for good, where nobody reads. */
function cut({ session, socket }: Connection): void {
  session.destroy();
  socket.destroy();
}

/** Asks the peer for a sign of life and cuts the connection when none comes: nothing else notices a frozen client. */
function keepAlive(connection: Connection, { intervalMs, timeoutMs }: Keepalive, clock: Clock): Disposable {
  const { session } = connection;
  let over = false;
  let timer = clock.after(intervalMs, ask);

  function ask(): void {
    // A session that is over waits for its peer to read the rest.
    if (session.destroyed) {
      cut(connection);
      return;
    }
    timer = clock.after(timeoutMs, () => cut(connection));
    // Node does not ping on a connection that takes no more streams; settings want an answer, too.
    if (session.closed) session.settings({}, answered);
    else session.ping(answered);
  }

  function answered(): void {
    timer[Symbol.dispose]();
    if (!over) timer = clock.after(intervalMs, ask);
  }

  return {
    [Symbol.dispose]() {
      over = true;
      timer[Symbol.dispose]();
    },
  };
}
