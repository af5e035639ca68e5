import type { LookupAddress } from "node:dns";
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

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
export function openSocket(target: SocketTarget, session: Buffer | undefined): Socket | TLSSocket {
  const { host, port } = target;
  const options = {
    host,
    port,
    autoSelectFamily: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    highWaterMark: READ_AHEAD_BYTES,
    ...(isLocalhost(host) ? { lookup: lookupLoopback } : {}),
  };
  if (!target.secure) return connectTcp(options);
  return connectTls({
    ...options,
    ALPNProtocols: ["http/1.1"],
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(session === undefined ? {} : { session }),
  });
}

/** The event at which an opened socket can be used. */
export function readyEvent(target: SocketTarget): "connect" | "secureConnect" {
  return target.secure ? "secureConnect" : "connect";
}

function isLocalhost(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

/** `localhost` is loopback in both families, whatever the hosts file says. Source: RFC 6761, section 6.3. */
const lookupLoopback: LookupFunction = (_host, options, callback) => {
  const addresses: LookupAddress[] = [
    { address: "127.0.0.1", family: 4 },
    { address: "::1", family: 6 },
  ];
  if (options.all === true) callback(null, addresses);
  else callback(null, "127.0.0.1", 4);
};
