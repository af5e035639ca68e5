import { setTimeout as delay } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { CallStreamRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { CALL_STREAM, envelope, type RawSocket, rawSocket } from "./raw.ts";
import type { Served } from "./serve.ts";

/** Types of frames. Source: RFC 9113, 6. */
export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GOAWAY = 7;
const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

export const END_STREAM = 1;
export const END_HEADERS = 4;

/** What an HTTP/2 client begins a connection with; `settings` as pairs of id and value. */
export function preface(...settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.concat(settings.map(([id, value]) => Buffer.concat([uint(2, id), uint(4, value)])));
  return Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(SETTINGS, 0, 0, payload)]);
}

/** One HTTP/2 frame. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A number of so many bytes. */
export function uint(bytes: number, value: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}

/** Header fields of a gRPC request for the path. */
export function grpcFields(path: string): Buffer {
  return Buffer.concat([
    // :method POST, :scheme http, by their numbers in HPACK's static table.
    Buffer.from([0x83, 0x86]),
    literal(":path", path),
    literal(":authority", "x"),
    literal("content-type", "application/grpc"),
    literal("te", "trailers"),
  ]);
}

/** A whole gRPC request. */
export function grpcRequest(path: string, stream: number, message: Uint8Array): Buffer {
  return Buffer.concat([
    frame(HEADERS, END_HEADERS, stream, grpcFields(path)),
    frame(DATA, END_STREAM, stream, envelope(message)),
  ]);
}

/** Bytes of a CallStream of a tool. */
export function streamRequest(tool: string): Uint8Array {
  return toBinary(CallStreamRequestSchema, create(CallStreamRequestSchema, { invocation: { name: tool } }));
}

/**
 * A client that asks for a stream without an end, in windows as wide as they can be, and reads nothing. Resolves when
 * the system takes no more for it.
 */
export async function floodedSocket({ port, registry }: Served): Promise<RawSocket> {
  let lastMs = Number.POSITIVE_INFINITY;
  registry.add({ name: "flood" }, async function* () {
    while (true) {
      lastMs = performance.now();
      yield { type: "delta", index: 0, text: "x".repeat(60_000) };
    }
  });
  const raw = await rawSocket(port);
  raw.socket.pause();
  const windows = Buffer.concat([preface([4, 2 ** 31 - 1]), frame(WINDOW_UPDATE, 0, 0, uint(4, 2 ** 30))]);
  raw.socket.write(Buffer.concat([windows, grpcRequest(CALL_STREAM, 1, streamRequest("flood"))]));
  while (performance.now() - lastMs < 100 || lastMs === Number.POSITIVE_INFINITY) await delay(10);
  return raw;
}

/** A literal header field without Huffman coding. Source: RFC 7541, 6.2.2. */
export function literal(name: string, value: string): Buffer {
  const text = (of: string): Buffer => Buffer.concat([Buffer.from([Buffer.byteLength(of)]), Buffer.from(of)]);
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}
