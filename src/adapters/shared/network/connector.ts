import { isIP, type LookupFunction, Socket } from "node:net";
import type { buildConnector } from "undici";
import { isLocalhost } from "./addresses.ts";
import { ConnectProblem, connectProblem } from "./connect-problem.ts";
import type { EgressGuard } from "./egress.ts";
import { hostLookup } from "./host-lookup.ts";
import type { Proxy, Route } from "./proxy.ts";
import { openSocket, readyEvent, type SocketTarget, secureSocket, socketTarget, type TlsChoice } from "./socket.ts";
import { openTunnel } from "./tunnel.ts";

/** What a connector needs. */
export interface ConnectorOptions {
  /** Scheme, host and port to connect to. */
  readonly origin: string;
  readonly route: Route;
  /** Says where they may lead. */
  readonly guard: EgressGuard;
  /** Asks the system for the addresses of a name. */
  readonly lookup: LookupFunction;
  /** How TLS is spoken. Default: as for HTTP/1.1. */
  readonly tls?: TlsChoice;
  /** A proxy passes the connection on, also where it is plain, instead of forwarding requests. Default: no. */
  readonly tunnels?: boolean;
}

/** Makes connections to one origin, directly or through a proxy. */
export class Connector {
  readonly origin: string;
  readonly #target: SocketTarget;
  readonly #route: Route;
  readonly #guard: EgressGuard;
  readonly #lookup: LookupFunction;
  readonly #tunnels: boolean;
  /** TLS session of the connection made last. */
  #session: Buffer | undefined;
  #judged: { readonly refusal: ConnectProblem | undefined } | undefined;

  constructor({ origin, route, guard, lookup, tls, tunnels = false }: ConnectorOptions) {
    this.origin = origin;
    const target = socketTarget(origin);
    this.#target = tls === undefined ? target : { ...target, tls };
    this.#tunnels = tunnels || target.secure;
    this.#route = route;
    this.#guard = guard;
    this.#lookup = lookup;
  }

  /** The proxy that connections go through. */
  get proxy(): Proxy | undefined {
    return this.#route.kind === "proxied" ? this.#route.proxy : undefined;
  }

  /** Why no proxy is used although one is set. */
  get exception(): string | undefined {
    return this.#route.kind === "direct" ? this.#route.exception : undefined;
  }

  /** The proxy that each request is addressed to; a tunnel hides its proxy from the requests. */
  get forwardingProxy(): Proxy | undefined {
    return this.#tunnels ? undefined : this.proxy;
  }

  /** Why no connection is made, whatever the name leads to. */
  get refusal(): ConnectProblem | undefined {
    // Asked for each tool of a list, and always the same: neither target nor rules change.
    this.#judged ??= { refusal: this.#judge() };
    return this.#judged.refusal;
  }

  #judge(): ConnectProblem | undefined {
    const { host } = this.#target;
    if (isIP(host) !== 0) return this.#guard.addressProblem(this.#target, host);
    // A proxy is asked by name, and what that leads to is learnt there alone.
    return this.#guard.hostProblem(this.#target, this.proxy !== undefined && !isLocalhost(host));
  }

  /**
   * Begins to connect. Calls back at most once, with the socket that requests go through or with why there is none.
   * `onSocket` is told of each socket that is to be destroyed from now on to end the attempt or the connection:
   * destroying the one that TLS runs over would pull it away from under it. The socket that is returned can be
   * destroyed too; a tunnel has none.
   */
  open(callback: buildConnector.Callback, onSocket: (socket: Socket) => void): Socket | undefined {
    const route = this.#route;
    if (route.kind === "misconfigured") return brokenSocket(misconfigured(route.variable), callback, onSocket);
    const { refusal } = this;
    if (refusal !== undefined) return brokenSocket(refusal, callback, onSocket);
    if (route.kind === "proxied") return this.#openProxied(route.proxy, callback, onSocket);
    const problem = (address: string): ConnectProblem | undefined => this.#guard.addressProblem(this.#target, address);
    const lookup = hostLookup(this.#target.host, this.#lookup, problem);
    const socket = openSocket(this.#target, lookup, this.#session);
    onSocket(socket);
    return this.#keepSession(whenReady(socket, readyEvent(this.#target), callback));
  }

  #openProxied(
    proxy: Proxy,
    callback: buildConnector.Callback,
    onSocket: (socket: Socket) => void,
  ): Socket | undefined {
    // Who set it means it, wherever it is.
    const lookup = hostLookup(proxy.target.host, this.#lookup, () => undefined);
    const socket = openSocket(proxy.target, lookup, undefined);
    onSocket(socket);
    const settle = onlyOnce(callback);
    whenReady(socket, readyEvent(proxy.target), (...[error, ready]) => {
      if (ready === null) settle(proxyUnreachable(proxy, error), null);
      else if (this.#tunnels) this.#openThrough(ready, proxy, settle, onSocket);
      else settle(null, ready);
    });
    if (!this.#tunnels) return socket;
    // Who waits has to hear of it also where the attempt was ended from here.
    socket.once("close", () => settle(proxyUnreachable(proxy, undefined), null));
    return undefined;
  }

  #openThrough(
    socket: Socket,
    proxy: Proxy,
    callback: buildConnector.Callback,
    onSocket: (socket: Socket) => void,
  ): void {
    openTunnel(socket, proxy, this.#target, (problem) => {
      if (problem !== undefined) {
        callback(problem, null);
        return;
      }
      // What breaks from now on shows in the socket over it.
      socket.on("error", () => undefined);
      if (!this.#target.secure) {
        callback(null, socket);
        return;
      }
      const secure = secureSocket(socket, this.#target, this.#session);
      onSocket(secure);
      this.#keepSession(whenReady(secure, "secureConnect", callback));
    });
  }

  #keepSession(socket: Socket): Socket {
    return socket.on("session", (session: Buffer) => {
      this.#session = session;
    });
  }
}

function onlyOnce(callback: buildConnector.Callback): buildConnector.Callback {
  let settled = false;
  return (...result) => {
    if (settled) return;
    settled = true;
    callback(...result);
  };
}

function whenReady(socket: Socket, event: "connect" | "secureConnect", callback: buildConnector.Callback): Socket {
  const onError = (error: Error): void => callback(error, null);
  socket.once("error", onError);
  socket.once(event, () => {
    socket.off("error", onError);
    callback(null, socket);
  });
  return socket;
}

function brokenSocket(problem: Error, callback: buildConnector.Callback, onSocket: (socket: Socket) => void): Socket {
  const socket = new Socket();
  onSocket(socket);
  whenReady(socket, "connect", callback);
  return socket.destroy(problem);
}

function misconfigured(variable: string): ConnectProblem {
  return new ConnectProblem(
    "PROXY_MISCONFIGURED",
    `${variable} holds no http or https URL of a proxy`,
    `Set ${variable} to the URL of an HTTP proxy, or name the host in NO_PROXY, and start the gateway again.`,
  );
}

function proxyUnreachable(proxy: Proxy, cause: Error | undefined): ConnectProblem {
  return new ConnectProblem(
    "PROXY_UNREACHABLE",
    `proxy ${proxy.origin} (${proxy.variable}): ${connectProblem(cause)}`,
    `Start the proxy, correct ${proxy.variable}, or name the host in NO_PROXY.`,
  );
}
