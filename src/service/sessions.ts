import type { ServerHttp2Session } from "node:http2";
import type { Clock } from "../core/clock.ts";

/** When to ask a peer for a sign of life, and how long to wait for it. */
export interface Keepalive {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** The HTTP/2 connections of a listener: Node's server does not know them. */
export class Sessions {
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #keepalive: Keepalive;
  readonly #clock: Clock;
  #closing = false;

  constructor(keepalive: Keepalive, clock: Clock) {
    this.#keepalive = keepalive;
    this.#clock = clock;
  }

  add(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    const keepalive = keepAlive(session, this.#keepalive, this.#clock);
    session.once("close", () => {
      keepalive[Symbol.dispose]();
      this.#sessions.delete(session);
    });
    if (this.#closing) session.close();
  }

  /** GOAWAY on each, now and from now on: no new streams, the open ones go on. */
  close(): void {
    this.#closing = true;
    for (const session of this.#sessions) session.close();
  }

  destroy(): void {
    for (const session of this.#sessions) session.destroy();
  }
}

/** Pings the peer and cuts the session when it stays silent: nothing else notices a frozen client. */
function keepAlive(session: ServerHttp2Session, { intervalMs, timeoutMs }: Keepalive, clock: Clock): Disposable {
  let timer = clock.after(intervalMs, ping);

  function ping(): void {
    timer = clock.after(timeoutMs, () => session.destroy());
    session.ping((error) => {
      timer[Symbol.dispose]();
      if (error === null && !session.destroyed) timer = clock.after(intervalMs, ping);
    });
  }

  return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
}
