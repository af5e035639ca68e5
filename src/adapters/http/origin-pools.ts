import type { LookupFunction } from "node:net";
import type { Clock } from "../../core/clock.ts";
import { type Slot, Slots, type SlotWait } from "../../core/slots.ts";
import { Connector } from "../shared/network/connector.ts";
import { choiceKey, type EgressChoice, EgressGuard } from "../shared/network/egress.ts";
import { type ProxyEnvironment, routeTo } from "../shared/network/proxy.ts";
import type { Connection } from "./connection.ts";
import { Connections } from "./connections.ts";
import { type PoolLimits, strictest } from "./pool-limits.ts";

/** What the way to an upstream depends on besides its declaration. */
export interface NetworkOptions {
  /** Finds the addresses of a name. */
  readonly lookup: LookupFunction;
  /** Where proxies are taken from. */
  readonly environment: ProxyEnvironment;
}

/** What a tool needs of the connections to its origin. */
export interface OriginUse {
  readonly origin: string;
  /** Where its connections may lead. */
  readonly egress: EgressChoice;
  readonly limits: PoolLimits;
  readonly clock: Clock;
}

/** The connections to each origin, which all tools of the origin share. */
export class OriginPools {
  readonly #network: NetworkOptions;
  readonly #pools = new Map<string, OriginPool>();

  constructor(network: NetworkOptions) {
    this.#network = network;
  }

  /** A tool's access to its origin. The strictest limits of those that are open count; disposing takes its own back. */
  open(use: OriginUse): OriginAccess {
    const { origin } = use;
    const pool = this.#pools.get(origin) ?? new OriginPool(use, this.#network);
    this.#pools.set(origin, pool);
    return new OriginAccess(pool, use, this.#unused);
  }

  readonly #unused = (pool: OriginPool): void => {
    if (this.#pools.get(pool.origin) === pool) this.#pools.delete(pool.origin);
  };
}

/** The connections to one origin. */
class OriginPool {
  readonly slots: Slots;
  readonly connections: Connections;
  readonly origin: string;
  readonly #network: NetworkOptions;
  readonly #connectors = new Map<string, Connector>();
  /** Thousands of tools may share an origin, and hardly ever have more than a few limits between them. */
  readonly #uses = new Map<string, { readonly limits: PoolLimits; count: number }>();

  constructor({ origin, limits, clock }: OriginUse, network: NetworkOptions) {
    this.#network = network;
    this.origin = origin;
    this.slots = new Slots(slotLimits(limits), clock);
    this.connections = new Connections(limits);
  }

  /** No tool reaches through a connection of another where it could not go by itself. */
  connector(egress: EgressChoice): Connector {
    const key = choiceKey(egress);
    const known = this.#connectors.get(key);
    if (known !== undefined) return known;
    const { lookup, environment } = this.#network;
    const { origin } = this;
    const connector = new Connector({
      origin,
      route: routeTo(origin, environment),
      guard: new EgressGuard(egress),
      lookup,
    });
    this.#connectors.set(key, connector);
    return connector;
  }

  add(limits: PoolLimits): void {
    const key = limitsKey(limits);
    const use = this.#uses.get(key) ?? { limits, count: 0 };
    this.#uses.set(key, use);
    if (++use.count === 1) this.#limit();
  }

  /** Whether somebody else uses it. */
  remove(limits: PoolLimits): boolean {
    const key = limitsKey(limits);
    const use = this.#uses.get(key);
    if (use !== undefined && --use.count === 0) {
      this.#uses.delete(key);
      this.#limit();
    }
    return this.#uses.size > 0;
  }

  #limit(): void {
    const [first, ...others] = [...this.#uses.values()].map(({ limits }) => limits);
    if (first === undefined) return;
    const limits = strictest(first, others);
    this.slots.setLimits(slotLimits(limits));
    this.connections.setLimits(limits);
  }
}

/** One tool's access to the connections to its origin. */
export class OriginAccess implements AsyncDisposable {
  readonly connector: Connector;
  readonly #pool: OriginPool;
  readonly #limits: PoolLimits;
  readonly #unused: (pool: OriginPool) => void;
  #closing: Promise<void> | undefined;

  /** `unused`: called when nobody uses the pool any more. */
  constructor(pool: OriginPool, { egress, limits }: OriginUse, unused: (pool: OriginPool) => void) {
    this.#pool = pool;
    this.#limits = limits;
    this.#unused = unused;
    this.connector = pool.connector(egress);
    pool.add(limits);
  }

  /** The right to one connection at a time, in the order of asking. Throws as {@link Slots.take} does. */
  slot(wait: SlotWait): Slot | Promise<Slot> {
    return this.#pool.slots.take(wait);
  }

  /** A connection for one request, which a slot gives a right to; `fresh`: one that was never used. */
  take(fresh: boolean): Connection {
    return this.#pool.connections.take(this.connector, fresh);
  }

  /** Keeps a connection for another call. */
  giveBack(connection: Connection): void {
    this.#pool.connections.giveBack(connection);
  }

  /** Closes a connection that was taken, at once, whatever it is doing. */
  destroy(connection: Connection): void {
    this.#pool.connections.destroy(connection);
  }

  /** Resolves when no socket is left of what was destroyed, and none at all where this was the last access. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { connections } = this.#pool;
    if (this.#pool.remove(this.#limits)) return connections.settled();
    this.#unused(this.#pool);
    await connections[Symbol.asyncDispose]();
  }
}

/** Equal for equal limits. */
function limitsKey({ maxConnections, maxWaiting, maxIdle, idleMs }: PoolLimits): string {
  return [maxConnections, maxWaiting, maxIdle, idleMs].join();
}

function slotLimits({ maxConnections, maxWaiting }: PoolLimits): { limit: number; maxWaiting: number } {
  return { limit: maxConnections, maxWaiting };
}
