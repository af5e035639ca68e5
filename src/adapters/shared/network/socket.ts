import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";

/** As much as node's own HTTP reads ahead. */
const READ_AHEAD_BYTES = 64 * 1024;

const KEEP_ALIVE_PROBE_MS = 60_000;

/** An origin to connect to. */
export interface SocketTarget {
  readonly secure: boolean;
  /** Name or address, an IPv6 one without brackets. */
  readonly host: string;
  readonly port: number;
  /** Of a secure one, what is not as it is for HTTP/1.1 and the system's certificates. */
  readonly tls?: TlsChoice;
}

/** How TLS is spoken to a target. What is absent is as it is for HTTP/1.1. */
export interface TlsChoice {
  /** The protocols that are offered. */
  readonly alpn?: readonly string[];
  /** Who vouches for the server, in PEM, instead of whom the system trusts. */
  readonly ca?: string | Buffer;
  /** The certificate and the key that the gateway shows, in PEM. */
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The name that the server's certificate has to be for, instead of the target's host. */
  readonly serverName?: string;
}

/** Takes an origin such as `http://[::1]:7434` apart. */
export function socketTarget(origin: string): SocketTarget {
  const { protocol, hostname, port } = new URL(origin);
  const secure = protocol === "https:";
  return { secure, host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? (secure ? 443 : 80) : Number(port) };
}

/**
 * Begins to connect, trying every address of the host. The socket is ready for use at {@link readyEvent}; until then
 * an `error` event says why it cannot.
 */
export function openSocket(
  target: SocketTarget,
  lookup: LookupFunction | undefined,
  session: Buffer | undefined,
): Socket | TLSSocket {
  const options = {
    host: target.host,
    port: target.port,
    autoSelectFamily: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    highWaterMark: READ_AHEAD_BYTES,
    ...(lookup === undefined ? {} : { lookup }),
  };
  return target.secure ? connectTls({ ...options, ...tlsOptions(target, session) }) : connectTcp(options);
}

/** Begins TLS over a socket that leads to the target. It is ready at `secureConnect`. */
export function secureSocket(socket: Socket, target: SocketTarget, session: Buffer | undefined): TLSSocket {
  return connectTls({ socket, host: target.host, ...tlsOptions(target, session) });
}

function tlsOptions({ host, tls = {} }: SocketTarget, session: Buffer | undefined): ConnectionOptions {
  const { alpn = ["http/1.1"], serverName = isIP(host) === 0 ? host : undefined, ...certificates } = tls;
  return {
    ALPNProtocols: [...alpn],
    ...certificates,
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(session === undefined ? {} : { session }),
  };
}

/** The event at which an opened socket can be used. */
export function readyEvent(target: SocketTarget): "connect" | "secureConnect" {
  return target.secure ? "secureConnect" : "connect";
}
