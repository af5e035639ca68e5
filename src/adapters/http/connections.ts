import type { Connector } from "../shared/network/connector.ts";
import { Connection } from "./connection.ts";

/** How many connections are kept, and how long. */
export interface KeptConnections {
  /** Most that are open. Who takes one sees to it that no more are taken. */
  readonly maxConnections: number;
  readonly maxIdle: number;
  /** How long one is kept, unless the upstream asks for less. */
  readonly idleMs: number;
}

/**
 * The connections to one origin. Each carries one request at a time, so that cancelling a call closes its connection
 * and touches no other. A call takes one and gives it back, or destroys it; how many there are is up to who calls.
 */
export class Connections implements AsyncDisposable {
  #kept: KeptConnections;
  readonly #open = new Set<Connection>();
  readonly #closing = new Set<Promise<void>>();
  /** The one used last is taken first, so that a lull lets the others go. */
  readonly #idle: Connection[] = [];

  constructor(kept: KeptConnections) {
    this.#kept = kept;
  }

  /** Other bounds from now on. */
  setLimits(kept: KeptConnections): void {
    this.#kept = kept;
    while (this.#idle.length > kept.maxIdle) this.#dropIdle();
  }

  /** A connection for one request, made by this connector; `fresh`: one that was never used. */
  take(connector: Connector, fresh = false): Connection {
    const at = fresh ? -1 : this.#idle.findLastIndex((idle) => idle.connector === connector);
    const [idle] = at === -1 ? [] : this.#idle.splice(at, 1);
    if (idle !== undefined) return idle;
    // One that nobody uses must not keep a call waiting.
    if (this.#open.size >= this.#kept.maxConnections) this.#dropIdle();
    const connection = new Connection(connector, this.#kept.idleMs, () => this.#forget(connection));
    this.#open.add(connection);
    return connection;
  }

  /** Keeps a connection for another call. */
  giveBack(connection: Connection): void {
    const room = this.#idle.length < this.#kept.maxIdle && this.#open.size <= this.#kept.maxConnections;
    if (room && this.#open.has(connection)) this.#idle.push(connection);
    else this.destroy(connection);
  }

  /** Closes a connection that was taken, at once, whatever it is doing. */
  destroy(connection: Connection): void {
    this.#open.delete(connection);
    const closing = connection.destroy().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Resolves when what was destroyed has no socket left. */
  async settled(): Promise<void> {
    await Promise.all(this.#closing);
  }

  /** Closes all of them. Resolves when no socket is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#idle.length = 0;
    for (const connection of this.#open) this.destroy(connection);
    await this.settled();
  }

  /** The one that was used longest ago. */
  #dropIdle(): void {
    const idle = this.#idle.shift();
    if (idle !== undefined) this.destroy(idle);
  }

  /** An idle connection whose socket is gone is none. */
  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection);
    if (at === -1) return;
    this.#idle.splice(at, 1);
    this.destroy(connection);
  }
}
