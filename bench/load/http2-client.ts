import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import { buffer } from "node:stream/consumers";
import { EnvelopeReader, encodeRequest, envelope, messagesOf, methodPath } from "../wire.ts";
import type { LoadClient } from "./client.ts";

const CALLS_PER_CONNECTION = 8;

interface Http2Dialect {
  /** Header of a unary and of a stream request. */
  readonly contentType: { readonly unary: string; readonly stream: string };
  readonly headers: Readonly<Record<string, string>>;
  /** Whether a unary message stands in an envelope. */
  readonly enveloped: boolean;
  readonly encoding: "proto" | "json";
}

/** gRPC and Connect (JSON) over HTTP/2, by hand, so that the generator costs little beside what it measures. */
export const HTTP2_DIALECTS: Readonly<Record<"grpc" | "connect-h2", Http2Dialect>> = {
  grpc: {
    contentType: { unary: "application/grpc", stream: "application/grpc" },
    headers: { te: "trailers" },
    enveloped: true,
    encoding: "proto",
  },
  "connect-h2": {
    contentType: { unary: "application/json", stream: "application/connect+json" },
    headers: { "connect-protocol-version": "1" },
    enveloped: false,
    encoding: "json",
  },
};

/** A client with as many connections as `inFlight` needs at eight calls each. */
export async function createHttp2Client(
  dialect: Http2Dialect,
  target: { readonly port: number; readonly tool: string; readonly validateOnly: boolean; readonly inFlight: number },
): Promise<LoadClient> {
  const count = Math.ceil(target.inFlight / CALLS_PER_CONNECTION);
  const sessions = Array.from({ length: count }, () => connect(`http://127.0.0.1:${target.port}`));
  await Promise.all(sessions.map((session) => once(session, "connect")));
  const unary = encodeRequest(false, dialect.encoding, target.tool, target.validateOnly);
  const unaryBody = dialect.enveloped ? envelope(unary) : unary;
  const streamBody = envelope(encodeRequest(true, dialect.encoding, target.tool, target.validateOnly));
  let turn = 0;
  const begin = (stream: boolean): ClientHttp2Stream => {
    const session = sessions[turn++ % sessions.length] as ClientHttp2Session;
    const request = session.request({
      ":method": "POST",
      ":path": methodPath(stream ? "CallStream" : "Call"),
      "content-type": stream ? dialect.contentType.stream : dialect.contentType.unary,
      ...dialect.headers,
    });
    request.end(stream ? streamBody : unaryBody);
    return request;
  };
  return {
    call: async () => unaryAnswer(begin(false), dialect),
    stream: async (onMessage, signal) => readStream(begin(true), onMessage, signal),
    async [Symbol.asyncDispose]() {
      await Promise.all(
        sessions.map(async (session) => {
          session.destroy();
          if (!session.closed) await once(session, "close");
        }),
      );
    },
  };
}

async function unaryAnswer(request: ClientHttp2Stream, dialect: Http2Dialect): Promise<Uint8Array> {
  let status: unknown;
  let grpcStatus: unknown = "0";
  request.once("response", (headers) => {
    status = headers[":status"];
    if (headers["grpc-status"] !== undefined) grpcStatus = headers["grpc-status"];
  });
  request.once("trailers", (trailers: IncomingHttpHeaders) => {
    grpcStatus = trailers["grpc-status"];
  });
  const body = await buffer(request);
  if (status !== 200 || grpcStatus !== "0") {
    throw new Error(
      `HTTP ${String(status)}, grpc-status ${String(grpcStatus)}: ${body.toString("utf8").slice(0, 300)}`,
    );
  }
  return dialect.enveloped ? body.subarray(5) : body;
}

async function readStream(
  request: ClientHttp2Stream,
  onMessage: (bytes: Uint8Array) => void,
  signal: AbortSignal,
): Promise<void> {
  const stop = (): void => request.close(constants.NGHTTP2_CANCEL);
  signal.addEventListener("abort", stop, { once: true });
  const reader = new EnvelopeReader();
  let grpcStatus: unknown = "0";
  request.on("trailers", (trailers: IncomingHttpHeaders) => {
    grpcStatus = trailers["grpc-status"];
  });
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      for (const message of messagesOf(reader.push(chunk))) onMessage(message);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
  if (!signal.aborted && grpcStatus !== "0") throw new Error(`grpc-status ${String(grpcStatus)}`);
}
