import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { listenAnywhere } from "../servers/ready.ts";

/** Streams on one connection; a server takes 100 of them where it says nothing else. */
const STREAMS_A_CONNECTION = 100;
/** Streams that are being opened at a time. */
const OPENING = 50;

/** Name of the tool whose upstream says nothing. */
export const SILENT = "scale_silent";

/** A declaration of {@link SILENT} for an upstream on loopback. */
export function silent(upstreamPort: number): string {
  return `name: ${SILENT}
description: Reaches an upstream that takes the request and says nothing
type: http
method: GET
delivery: incremental
endpoint: http://127.0.0.1:${upstreamPort}/silent
timeout: { read: 1h, total: 1h }
pool: { max_connections: 20000 }
`;
}

/** An upstream that takes requests and never answers. */
export interface SilentUpstream extends AsyncDisposable {
  readonly port: number;
  /** Resolves when so many requests are waiting. */
  waiting(count: number): Promise<void>;
}

/** Starts it. */
export async function startSilentUpstream(): Promise<SilentUpstream> {
  const requests = new Set<IncomingMessage>();
  const server = createServer((request) => {
    requests.add(request);
    request.once("close", () => requests.delete(request));
    server.emit("waiting");
  });
  server.requestTimeout = 0;
  const port = await listenAnywhere(server);
  return {
    port,
    waiting: async (count) => {
      while (requests.size < count) await once(server, "waiting");
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What the streams are. */
export type StreamKind = "watch" | "call";

/** Open streams, which are cancelled when disposed. */
export interface OpenStreams extends AsyncDisposable {
  readonly count: number;
}

/** Opens so many streams over gRPC and waits for the first message of each: `started`, or `synced` of an empty list. */
export async function openStreams(gatewayPort: number, kind: StreamKind, count: number): Promise<OpenStreams> {
  const baseUrl = `http://127.0.0.1:${gatewayPort}`;
  const stop = new AbortController();
  const sessions: Http2SessionManager[] = [];
  const ended: Promise<void>[] = [];
  const connect = (): Client<typeof ToolGatewayService> => {
    const sessionManager = new Http2SessionManager(baseUrl);
    sessions.push(sessionManager);
    return createClient(ToolGatewayService, createGrpcTransport({ baseUrl, sessionManager }));
  };
  for (let opened = 0; opened < count; ) {
    const client = connect();
    for (let left = Math.min(STREAMS_A_CONNECTION, count - opened); left > 0; left -= OPENING) {
      const batch = Array.from({ length: Math.min(OPENING, left) }, () => openStream(client, kind, stop.signal));
      for (const stream of await Promise.all(batch)) ended.push(stream.ended);
      opened += batch.length;
    }
  }
  return {
    count,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await Promise.all(ended);
      for (const session of sessions) session.abort();
    },
  };
}

async function openStream(
  client: Client<typeof ToolGatewayService>,
  kind: StreamKind,
  signal: AbortSignal,
): Promise<{ readonly ended: Promise<void> }> {
  const messages: AsyncIterable<unknown> =
    kind === "watch"
      ? client.watch({}, { signal })
      : client.callStream({ invocation: { name: SILENT }, heartbeat: { seconds: 0n, nanos: 0 } }, { signal });
  const iterator = messages[Symbol.asyncIterator]();
  await iterator.next();
  const drain = async (): Promise<void> => {
    while ((await iterator.next()).done !== true);
  };
  // The only way such a stream ends is that it is cancelled.
  return { ended: drain().catch(() => undefined) };
}
