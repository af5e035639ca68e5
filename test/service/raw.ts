import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionOptions,
  connect as connectHttp2,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect, type Socket } from "node:net";

/** Path of a unary method that Connect serves by POST and, since it changes nothing, by GET. */
export const LIST = "/toolgate.v1.ToolGatewayService/List";
export const CALL = "/toolgate.v1.ToolGatewayService/Call";
export const CALL_STREAM = "/toolgate.v1.ToolGatewayService/CallStream";

/** A TCP connection with all it received so far. */
export interface RawSocket extends Disposable {
  readonly socket: Socket;
  readonly text: () => string;
  /** Resolves when the peer closed. */
  readonly closed: Promise<void>;
  /** Resolves when the text received matches. */
  received(pattern: RegExp): Promise<void>;
}

export async function rawSocket(port: number): Promise<RawSocket> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1").on("data", (piece: string) => {
    text += piece;
  });
  // A reset is one way of being closed.
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return {
    socket,
    closed,
    text: () => text,
    async received(pattern) {
      while (!pattern.test(text)) {
        if (socket.closed) throw new Error(`closed after ${JSON.stringify(text)}`);
        await Promise.race([once(socket, "data"), closed]);
      }
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
}

/** An HTTP/2 client session of Node's own. */
export function rawSession(url: string, options: ClientSessionOptions = {}): ClientHttp2Session & Disposable {
  const session = connectHttp2(url, options);
  session.on("error", () => undefined);
  return Object.assign(session, { [Symbol.dispose]: () => session.destroy() });
}

export interface RawAnswer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly rstCode: number;
}

/** Everything a stream answers until it closes. */
export async function answerOf(stream: ClientHttp2Stream): Promise<RawAnswer> {
  let headers: Record<string, unknown> = {};
  let trailers: Record<string, unknown> = {};
  const pieces: Buffer[] = [];
  stream.on("response", (got) => {
    headers = got;
  });
  stream.on("trailers", (got) => {
    trailers = got;
  });
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("close", resolve));
  const status = headers[":status"];
  return {
    status: typeof status === "number" ? status : undefined,
    headers,
    trailers,
    body: Buffer.concat(pieces),
    rstCode: stream.rstCode,
  };
}

/** A gRPC message in its envelope. */
export function envelope(message: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

/** Headers of a gRPC request. */
export function grpcHeaders(path: string, more: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  return { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...more };
}
