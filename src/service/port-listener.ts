import { createServer, type Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import { addressText, type ListenAddress, type TcpAddress } from "../core/listen-address.ts";
import type { Logger } from "../core/logger.ts";
import type { CertificateFiles } from "./certificate.ts";
import { CertificateWatch } from "./certificate-watch.ts";
import { limitAge } from "./connection-age.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import type { Listener, NodeRequest, NodeResponse, RequestHandler, StreamTaker } from "./listener.ts";
import { type Acceptor, PrefaceSniffer, type SocketTakers } from "./preface.ts";
import { type Keepalive, Sessions } from "./sessions.ts";
import { TlsAcceptor } from "./tls-acceptor.ts";
import { listenOnSocket } from "./unix-socket.ts";

/** How often Node looks for HTTP/1 requests whose headers or body are late. */
const LATENESS_CHECK_MS = 1_000;

/** What a listener on one port needs. */
export interface PortListenerOptions {
  readonly address: ListenAddress;
  /** Default: plaintext. Not on a Unix socket. */
  readonly tls?: CertificateFiles;
  readonly handler: RequestHandler;
  /** Asked before the handler about each stream of HTTP/2. */
  readonly take: StreamTaker;
  readonly limits: ConnectionLimits;
  /** Most streams of one HTTP/2 connection at a time. */
  readonly concurrentStreams: number;
  readonly keepalive: Keepalive;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * One TCP port or Unix socket for HTTP/1.1 and HTTP/2, in plaintext or over TLS. The HTTP/1 server owns the port and
 * gives HTTP/2 connections away; the other way round its header and request timeouts would never start. TLS stands
 * between the port and the two, so that what holds without it holds with it.
 */
export function createPortListener(options: PortListenerOptions): Listener {
  const { address, keepalive, clock, logger } = options;
  const sessions = new Sessions(keepalive, clock);
  const old = new WeakSet<Socket>();
  const http1 = createHttp1(options, onRequest);
  const http2 = createHttp2(options);
  http2.on("sessionError", (error) => logger.debug("connection-failed", { error }));
  // A preface where ALPN has settled on HTTP/1: Node would keep the socket for ten seconds, and a stop with it.
  http2.on("unknownProtocol", (socket: Socket) => void socket.destroy());
  const takers = createTakers(http1, http2, {
    http1: (socket) =>
      limitAge(socket, keepalive, clock, { leave: () => void old.add(socket), cut: () => void socket.destroy() }),
    http2: (session, socket) => sessions.add(session, socket),
  });
  const { acceptor, certificates } = createAcceptor(takers, options);
  http1.on("connection", (socket: Socket) => acceptor.accept(socket));
  let removeSocket: (() => Promise<void>) | undefined;
  let closing: Promise<void> | undefined;

  /** A connection that serves a request while the listener closes, or that is too old, ends with it. */
  function onRequest(request: NodeRequest, response: NodeResponse): void {
    const last = closing !== undefined || old.has(request.socket);
    if ("shouldKeepAlive" in response && last) response.shouldKeepAlive = false;
    response.once("close", () => {
      if (closing !== undefined) setImmediate(() => http1.closeIdleConnections());
    });
    options.handler(request, response);
  }

  async function bind(): Promise<ListenAddress> {
    if (!("path" in address)) return listenOnPort(http1, address);
    removeSocket = await listenOnSocket(http1, address.path);
    return address;
  }

  async function close(): Promise<void> {
    const closed = new Promise<void>((resolve) => http1.close(() => resolve()));
    acceptor.destroy();
    sessions.close();
    await Promise.all([closed, removeSocket?.(), certificates?.[Symbol.asyncDispose]()]);
  }

  return {
    async listen() {
      await certificates?.start();
      const bound = await bind();
      // Such as too many open files: without a listener it would end the process.
      http1.on("error", (error) => logger.error("listener-failed", { error }));
      return bound;
    },
    close: () => (closing ??= close()),
    destroy() {
      acceptor.destroy();
      sessions.destroy();
      http1.closeAllConnections();
    },
  };
}

function createHttp1({ limits, keepalive }: PortListenerOptions, handler: RequestHandler): Server {
  const server = createServer(
    {
      headersTimeout: Math.min(limits.headersMs, limits.requestMs),
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleMs,
      maxHeaderSize: limits.headerBytes,
      connectionsCheckingInterval: Math.min(LATENESS_CHECK_MS, limits.headersMs),
      noDelay: true,
      // HTTP/1 has no pings: the system asks whether the peer is still there, ten times a second apart.
      keepAlive: true,
      keepAliveInitialDelay: keepalive.intervalMs,
    },
    handler,
  );
  server.maxConnections = limits.connections;
  return server;
}

function createHttp2({ limits, concurrentStreams, handler, take }: PortListenerOptions): Http2Server {
  const server = createHttp2Server(
    {
      maxSessionMemory: limits.sessionMemoryMb,
      streamResetBurst: limits.streamResetBurst,
      streamResetRate: limits.streamResetRate,
      settings: { maxConcurrentStreams: concurrentStreams, maxHeaderListSize: limits.headerBytes, enablePush: false },
    },
    handler,
  );
  // Node's own makes requests and responses of streams, for the handler.
  const makeRequest = server.listeners("stream");
  server.removeAllListeners("stream");
  server.on("stream", (stream, headers, ...more) => {
    if (!take(stream, headers)) for (const listener of makeRequest) listener.call(server, stream, headers, ...more);
  });
  return server;
}

/** Told of each connection that a server takes on. */
interface Taken {
  readonly http1: (socket: Socket) => void;
  readonly http2: (session: ServerHttp2Session, socket: Socket) => void;
}

/** Hands sockets to the servers in their own ways of taking a connection on; the HTTP/1 server's is put out of force. */
function createTakers(http1: Server, http2: Http2Server, taken: Taken): SocketTakers {
  const take = http1.listeners("connection");
  http1.removeAllListeners("connection");
  return {
    http1: (socket) => {
      taken.http1(socket);
      for (const listener of take) listener.call(http1, socket);
      socket.resume();
    },
    http2: (socket) => {
      // HTTP/1 servers keep a socket half open after the peer's FIN; here it means that the peer is gone.
      socket.allowHalfOpen = false;
      const onSession = (session: ServerHttp2Session): void => taken.http2(session, socket);
      http2.once("session", onSession);
      http2.emit("connection", socket);
      // Where ALPN has settled on HTTP/1 there is none.
      http2.off("session", onSession);
    },
  };
}

interface Entrance {
  readonly acceptor: Acceptor;
  /** Absent: plaintext. */
  readonly certificates?: CertificateWatch;
}

function createAcceptor(takers: SocketTakers, options: PortListenerOptions): Entrance {
  const { address, tls, limits, clock, logger } = options;
  if (tls === undefined) return { acceptor: new PrefaceSniffer(takers, clock, limits.sniffMs) };
  if ("path" in address) throw new GatewayError("INTERNAL", `no TLS on ${addressText(address)}: leave \`tls\` out`);
  const { client } = tls;
  const acceptor = new TlsAcceptor(takers, {
    clock,
    logger,
    sniffMs: limits.sniffMs,
    ...(client === undefined ? {} : { clientAuth: client.required ? ("required" as const) : ("optional" as const) }),
  });
  const certificates = new CertificateWatch(tls, { clock, logger, use: (certificate) => acceptor.use(certificate) });
  return { acceptor, certificates };
}

function listenOnPort(server: Server, address: TcpAddress): Promise<TcpAddress> {
  const { host, port } = address;
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const why = cause.code === "EADDRINUSE" ? "another process listens there; stop it or" : "check the address or";
      reject(
        new GatewayError(
          "INTERNAL",
          `cannot listen on ${addressText(address)}: ${why} set \`listen\` in gateway.yaml`,
          {
            metadata: { code: cause.code ?? "" },
            cause,
          },
        ),
      );
    };
    server.once("error", onError);
    server.listen({ host, port }, () => {
      server.off("error", onError);
      const bound = server.address();
      const known = bound !== null && typeof bound === "object";
      resolve(known ? { host: bound.address, port: bound.port } : address);
    });
  });
}
