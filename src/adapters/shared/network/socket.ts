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

function tlsOptions({ host }: SocketTarget, session: Buffer | undefined): ConnectionOptions {
  return {
    ALPNProtocols: ["http/1.1"],
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(session === undefined ? {} : { session }),
  };
}

/** The event at which an opened socket can be used. */
export function readyEvent(target: SocketTarget): "connect" | "secureConnect" {
  return target.secure ? "secureConnect" : "connect";
}
