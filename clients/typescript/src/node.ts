import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Interceptor, Transport } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { retryRefusedStreams } from "./refused-stream.ts";

/** How to reach a gateway from Node.js. */
export interface NodeTransportOptions {
  /** Such as `http://127.0.0.1:7433`. */
  readonly baseUrl: string;
  /**
   * `grpc`: gRPC over HTTP/2, one connection for everything. `connect`: Connect over HTTP/1.1, for networks that let
   * nothing else through. Default `grpc`.
   */
  readonly protocol?: "grpc" | "connect";
  /** Time to open an HTTP/2 connection, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number;
  /** How often an open HTTP/2 connection in use is tested, in milliseconds. Default 30,000. */
  readonly pingIntervalMs?: number;
  /** Most bytes of one message. Default 16 MiB. */
  readonly maxMessageBytes?: number;
  /** Run around each request, first outermost. */
  readonly interceptors?: readonly Interceptor[];
}

/** A transport with connections of its own. Closing it ends what still runs; it never throws. */
export interface NodeTransport extends Transport, Disposable {
  /** As disposing. An idle transport does not keep the process alive. */
  close(): void;
}

const PING_TIMEOUT_MS = 10_000;

/** Makes a transport. It connects at the first request and again after a lost connection. */
export function createNodeTransport(options: NodeTransportOptions): NodeTransport {
  return options.protocol === "connect" ? connectTransport(options) : grpcTransport(options);
}

function grpcTransport(options: NodeTransportOptions): NodeTransport {
  const { baseUrl } = options;
  const sessionManager = new Http2SessionManager(baseUrl, {
    pingIntervalMs: options.pingIntervalMs ?? 30_000,
    pingTimeoutMs: PING_TIMEOUT_MS,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
  });
  // The retry is innermost, so that other interceptors see one request and its end.
  const interceptors = [...(options.interceptors ?? []), retryRefusedStreams];
  const transport = createGrpcTransport({ ...limits(options), baseUrl, sessionManager, interceptors });
  return closable(transport, () => sessionManager.abort());
}

function connectTransport(options: NodeTransportOptions): NodeTransport {
  const { baseUrl } = options;
  const agent = baseUrl.startsWith("https:") ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
  const interceptors = [...(options.interceptors ?? [])];
  const nodeOptions = { agent };
  const transport = createConnectTransport({
    ...limits(options),
    baseUrl,
    httpVersion: "1.1",
    nodeOptions,
    interceptors,
  });
  return closable(transport, () => agent.destroy());
}

function limits(options: NodeTransportOptions): {
  readMaxBytes: number;
  writeMaxBytes: number;
  acceptCompression: [typeof compressionGzip];
} {
  const bytes = options.maxMessageBytes ?? 16 * 1024 * 1024;
  return { readMaxBytes: bytes, writeMaxBytes: bytes, acceptCompression: [compressionGzip] };
}

function closable(transport: Transport, close: () => void): NodeTransport {
  return Object.assign(transport, { close, [Symbol.dispose]: close });
}
