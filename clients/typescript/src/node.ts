import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { connect } from "node:net";
import type { Interceptor, Transport } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { type Bearer, withBearer } from "./bearer.ts";
import { retryRefusedStreams } from "./refused-stream.ts";

/** How to reach a gateway from Node.js. */
export interface NodeTransportOptions {
  /** Such as `http://127.0.0.1:7433`, `https://tools.example.com`, or `unix:/run/toolgate.sock` for a Unix socket. */
  readonly baseUrl: string;
  /** With `https:`: certificates in PEM of those to trust, instead of those that Node.js trusts. */
  readonly ca?: string | Uint8Array;
  /** With `https:`: the name the certificate has to be for. Default: that of `baseUrl`. */
  readonly serverName?: string;
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
  /** Sent with each request: an API key or a token, or what gives the one of now. */
  readonly bearer?: Bearer;
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
  const { baseUrl, socketPath } = placeOf(options);
  const pings = {
    pingIntervalMs: options.pingIntervalMs ?? 30_000,
    pingTimeoutMs: PING_TIMEOUT_MS,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
  };
  const session = socketPath === undefined ? tlsOf(options) : { createConnection: () => connect({ path: socketPath }) };
  const sessionManager = new Http2SessionManager(baseUrl, pings, session);
  // The retry is innermost, so that other interceptors see one request and its end.
  const interceptors = [...withBearer(options.bearer), ...(options.interceptors ?? []), retryRefusedStreams];
  const transport = createGrpcTransport({ ...limits(options), baseUrl, sessionManager, interceptors });
  return closable(transport, () => sessionManager.abort());
}

function connectTransport(options: NodeTransportOptions): NodeTransport {
  const { baseUrl, socketPath } = placeOf(options);
  const agent = baseUrl.startsWith("https:")
    ? new HttpsAgent({ keepAlive: true, ...tlsOf(options) })
    : new HttpAgent({ keepAlive: true });
  const interceptors = [...withBearer(options.bearer), ...(options.interceptors ?? [])];
  const nodeOptions = { agent, ...(socketPath === undefined ? {} : { socketPath }) };
  const transport = createConnectTransport({
    ...limits(options),
    baseUrl,
    httpVersion: "1.1",
    nodeOptions,
    interceptors,
  });
  return closable(transport, () => agent.destroy());
}

/** A Unix socket has no host of its own; `localhost` stands for it on the wire, as in other gRPC clients. */
function placeOf({ baseUrl }: NodeTransportOptions): { readonly baseUrl: string; readonly socketPath?: string } {
  const path = /^unix:(?:\/\/(?=\/))?(.+)$/.exec(baseUrl)?.[1];
  return path === undefined ? { baseUrl } : { baseUrl: "http://localhost", socketPath: path };
}

function tlsOf({ ca, serverName }: NodeTransportOptions): {
  readonly ca?: string | Buffer;
  readonly servername?: string;
} {
  return {
    ...(ca === undefined ? {} : { ca: typeof ca === "string" ? ca : Buffer.from(ca) }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
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
