import { connect as connectUnix, type LookupFunction, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Clock } from "../../core/clock.ts";
import { raceSignal } from "../../core/signal.ts";
import { ConnectProblem } from "../shared/network/connect-problem.ts";
import { Connector } from "../shared/network/connector.ts";
import { EgressGuard } from "../shared/network/egress.ts";
import { type ProxyEnvironment, routeTo } from "../shared/network/proxy.ts";
import type { TlsChoice } from "../shared/network/socket.ts";
import { Connection } from "./connection.ts";
import type { GrpcTarget } from "./grpc-config.ts";
import { readTlsFiles } from "./tls-files.ts";

/** Most connections to one target. */
const MAX_CONNECTIONS = 8;

/** Most calls that wait for a connection. */
const MAX_WAITING = 1_024;

/** How long a connection is kept without a call, where gateway.yaml does not say. */
const IDLE_MS = 300_000;

/** Longest wait for a sign of life. */
const CHECK_MS = 2_000;

/** The way to upstreams. */
export interface ChannelNetwork {
  /** Finds the addresses of a name. */
  readonly lookup: LookupFunction;
  /** Where proxies are taken from. */
  readonly environment: ProxyEnvironment;
}

/** What a channel is made from. */
export interface ChannelOptions {
  readonly target: GrpcTarget;
  readonly clock: Clock;
  /** How long a connection is kept without a call. Default 5 minutes. */
  readonly idleMs?: number | undefined;
}

/** So many calls wait for a connection that no more may. */
export class ChannelFull extends Error {
  readonly waiting = MAX_WAITING;
}

/** The connections to one target, which all its tools share. */
export class Channel implements AsyncDisposable {
  readonly #options: ChannelOptions;
  readonly #network: ChannelNetwork;
  readonly #connections = new Set<Connection>();
  readonly #waiting = new Set<() => void>();
  #opening: Promise<void> | undefined;
  #openingSocket: Socket | undefined;
  #closed = false;
  #opened = 0;

  constructor(options: ChannelOptions, network: ChannelNetwork) {
    this.#options = options;
    this.#network = network;
  }

  /** Another number where a connection was made since. */
  get generation(): number {
    return this.#opened;
  }

  /** Why no connection is made, whatever the name leads to. */
  get refusal(): ConnectProblem | undefined {
    return this.#options.target.path === undefined ? this.#connector({}).refusal : undefined;
  }

  /**
   * A connection with room for one call, which is kept for it until {@link Connection.release}.
   *
   * @param connectMs longest a new connection may take.
   * @throws the signal's reason; ChannelFull; why there is no connection.
   */
  async take(connectMs: number, signal: AbortSignal): Promise<Connection> {
    while (true) {
      signal.throwIfAborted();
      if (this.#closed) throw new ConnectProblem("CLOSED", "the tool was closed", "");
      const free = [...this.#connections].find(({ isFree }) => isFree);
      if (free !== undefined) {
        free.reserve();
        if (!free.isSilent || (await this.#isThere(free, connectMs, signal))) return free;
        free.release();
        continue;
      }
      if (this.#connections.size < MAX_CONNECTIONS) {
        this.#opening ??= this.#open(connectMs).finally(() => {
          this.#opening = undefined;
        });
        await raceSignal(this.#opening, signal);
      } else await this.#turn(signal);
    }
  }

  /** Closes every connection, with the calls over it. Resolves when no socket is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#openingSocket?.destroy();
    await Promise.all([...this.#connections].map((connection) => connection.destroy()));
    await this.#opening?.catch(() => undefined);
    this.#wake();
  }

  async #isThere(connection: Connection, connectMs: number, signal: AbortSignal): Promise<boolean> {
    try {
      return await raceSignal(connection.check(Math.min(connectMs, CHECK_MS)), signal);
    } catch (error) {
      connection.release();
      throw error;
    }
  }

  async #open(connectMs: number): Promise<void> {
    const { clock, target, idleMs = IDLE_MS } = this.#options;
    using _limit = clock.after(connectMs, () => {
      const text = `no connection within ${connectMs} ms (timeout.connect)`;
      const mend = "Look at the server, or raise `timeout.connect`.";
      this.#openingSocket?.destroy(new ConnectProblem("CONNECT_TIMEOUT", text, mend));
    });
    const socket = await this.#socket();
    const connection = await Connection.open({
      socket,
      origin: target.origin,
      clock,
      idleMs,
      changed: () => this.#changed(),
    });
    this.#openingSocket = undefined;
    if (this.#closed) {
      await connection.destroy();
      throw new ConnectProblem("CLOSED", "the tool was closed", "");
    }
    this.#opened += 1;
    this.#connections.add(connection);
    this.#wake();
  }

  #connector(tls: TlsChoice): Connector {
    const { target } = this.#options;
    const { lookup, environment } = this.#network;
    return new Connector({
      origin: target.origin,
      route: routeTo(target.origin, environment),
      guard: new EgressGuard(target.egress),
      lookup,
      tls: { alpn: ["h2"], ...tls },
      tunnels: true,
    });
  }

  async #socket(): Promise<Socket> {
    const { path, tls } = this.#options.target;
    const connector =
      path === undefined ? this.#connector(tls === undefined ? {} : await readTlsFiles(tls)) : undefined;
    return new Promise((resolve, reject) => {
      const onSocket = (socket: Socket): void => {
        this.#openingSocket = socket;
        if (this.#closed) socket.destroy();
      };
      if (connector === undefined) {
        const socket = connectUnix({ path: path ?? "" });
        socket.once("error", reject).once("connect", () => resolve(socket.off("error", reject)));
        onSocket(socket);
        return;
      }
      connector.open((...[error, socket]) => {
        if (socket === null) reject(error);
        else if (socket instanceof TLSSocket && socket.alpnProtocol !== "h2") {
          socket.destroy();
          reject(noHttp2());
        } else resolve(socket);
      }, onSocket);
    });
  }

  #changed(): void {
    for (const connection of this.#connections) if (!connection.isOpen) this.#connections.delete(connection);
    this.#wake();
  }

  /** Waits until a connection has more room, or may be made. */
  async #turn(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= MAX_WAITING) throw new ChannelFull();
    let wake: (() => void) | undefined;
    const turn = new Promise<void>((resolve) => {
      wake = resolve;
      this.#waiting.add(resolve);
    });
    try {
      await raceSignal(turn, signal);
    } finally {
      if (wake !== undefined) this.#waiting.delete(wake);
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

function noHttp2(): ConnectProblem {
  return new ConnectProblem(
    "NO_HTTP2",
    "its TLS does not offer HTTP/2 (ALPN `h2`)",
    "Name the port of the gRPC server in `grpc.address`.",
  );
}
