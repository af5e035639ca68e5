import { createServer, type Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import type { ListenAddress, Listener, NodeRequest, NodeResponse, RequestHandler } from "./listener.ts";
import { PrefaceSniffer } from "./preface.ts";
import { type Keepalive, Sessions } from "./sessions.ts";

/** How often Node looks for HTTP/1 requests whose headers or body are late. */
const LATENESS_CHECK_MS = 1_000;

/** What a plaintext listener needs. */
export interface PlaintextListenerOptions {
  readonly address: ListenAddress;
  readonly handler: RequestHandler;
  readonly limits: ConnectionLimits;
  /** Most streams of one HTTP/2 connection at a time. */
  readonly concurrentStreams: number;
  readonly keepalive: Keepalive;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * One TCP port for HTTP/1.1 and HTTP/2 in plaintext. The HTTP/1 server owns the port and gives HTTP/2 connections away;
 * the other way round its header and request timeouts would never start.
 */
export function createPlaintextListener(options: PlaintextListenerOptions): Listener {
  const { limits, clock, logger } = options;
  const sessions = new Sessions(options.keepalive, clock);
  const http1 = createHttp1(limits, onRequest);
  const http2 = createHttp2(options);
  http2.on("session", (session) => sessions.add(session));
  http2.on("sessionError", (error) => logger.debug("connection-failed", { error }));
  const sniffer = sniffConnections(http1, http2, clock, limits.sniffMs);
  let closing: Promise<void> | undefined;

  /** A connection that serves a request while the listener closes ends with it. */
  function onRequest(request: NodeRequest, response: NodeResponse): void {
    if ("shouldKeepAlive" in response && closing !== undefined) response.shouldKeepAlive = false;
    response.once("close", () => {
      if (closing !== undefined) setImmediate(() => http1.closeIdleConnections());
    });
    options.handler(request, response);
  }

  return {
    async listen() {
      const address = await listen(http1, options.address);
      // Such as too many open files: without a listener it would end the process.
      http1.on("error", (error) => logger.error("listener-failed", { error }));
      return address;
    },
    close() {
      closing ??= new Promise((resolve) => {
        http1.close(() => resolve());
        sniffer.destroy();
        sessions.close();
      });
      return closing;
    },
    destroy() {
      sniffer.destroy();
      sessions.destroy();
      http1.closeAllConnections();
    },
  };
}

function createHttp1(limits: ConnectionLimits, handler: RequestHandler): Server {
  const server = createServer(
    {
      headersTimeout: Math.min(limits.headersMs, limits.requestMs),
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleMs,
      maxHeaderSize: limits.headerBytes,
      connectionsCheckingInterval: Math.min(LATENESS_CHECK_MS, limits.headersMs),
      noDelay: true,
    },
    handler,
  );
  server.maxConnections = limits.connections;
  return server;
}

function createHttp2({ limits, concurrentStreams, handler }: PlaintextListenerOptions): Http2Server {
  return createHttp2Server(
    {
      maxSessionMemory: limits.sessionMemoryMb,
      streamResetBurst: limits.streamResetBurst,
      streamResetRate: limits.streamResetRate,
      settings: { maxConcurrentStreams: concurrentStreams, maxHeaderListSize: limits.headerBytes, enablePush: false },
    },
    handler,
  );
}

/** Puts a sniffer before the HTTP/1 server's own way of taking a connection on. */
function sniffConnections(http1: Server, http2: Http2Server, clock: Clock, sniffMs: number): PrefaceSniffer {
  const take = http1.listeners("connection");
  http1.removeAllListeners("connection");
  const sniffer = new PrefaceSniffer(
    {
      http1: (socket) => {
        for (const listener of take) listener.call(http1, socket);
        socket.resume();
      },
      http2: (socket) => {
        // HTTP/1 servers keep a socket half open after the peer's FIN; here it means that the peer is gone.
        socket.allowHalfOpen = false;
        http2.emit("connection", socket);
      },
    },
    clock,
    sniffMs,
  );
  http1.on("connection", (socket: Socket) => sniffer.accept(socket));
  return sniffer;
}

function listen(server: Server, { host, port }: ListenAddress): Promise<ListenAddress> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const why = cause.code === "EADDRINUSE" ? "another process listens there; stop it or" : "check the address or";
      reject(
        new GatewayError("INTERNAL", `cannot listen on ${host}:${port}: ${why} set \`listen\` in gateway.yaml`, {
          metadata: { code: cause.code ?? "" },
          cause,
        }),
      );
    };
    server.once("error", onError);
    server.listen({ host, port }, () => {
      server.off("error", onError);
      const bound = server.address();
      const known = bound !== null && typeof bound === "object";
      resolve(known ? { host: bound.address, port: bound.port } : { host, port });
    });
  });
}
