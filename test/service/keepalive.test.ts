import type { Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallStreamRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { waiting } from "./fake-registry.ts";
import { envelope, grpcHeaders, rawSession, rawSocket } from "./raw.ts";
import { PATIENT, serve } from "./serve.ts";

const CALL_STREAM = "/toolgate.v1.ToolGatewayService/CallStream";

/** One HTTP/2 frame. */
function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A literal header field without Huffman coding. Source: RFC 7541, 6.2.2. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

/** A client that asks for a stream and then is as still as a frozen process: it answers no ping. */
function frozenCall(name: string): Buffer {
  const request = create(CallStreamRequestSchema, { invocation: { name } });
  const headers = Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal(":path", CALL_STREAM),
    literal(":authority", "x"),
    literal("content-type", "application/grpc"),
    literal("te", "trailers"),
  ]);
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    frame(4, 0, 0),
    frame(1, 4, 1, headers),
    frame(0, 1, 1, envelope(toBinary(CallStreamRequestSchema, request))),
  ]);
}

test("a frozen client is noticed by the pings it does not answer, and its call ends [G-D02]", async () => {
  await using served = await serve({ keepalive: { intervalMs: 100, timeoutMs: 100 } });
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
  using raw = await rawSocket(served.port);
  raw.socket.write(frozenCall("wait"));
  await started.promise;
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
  await raw.closed;
});

test("a client that answers its pings is left alone", async () => {
  await using served = await serve({ keepalive: { intervalMs: 20, timeoutMs: 2000 } });
  const started = Promise.withResolvers<void>();
  served.registry.add(
    { name: "wait" },
    waiting(() => undefined, started.resolve),
  );
  using session = rawSession(served.url);
  let pings = 0;
  const enough = new Promise<void>((resolve) => session.on("ping", () => (++pings === 5 ? resolve() : undefined)));
  const stream = session.request(grpcHeaders(CALL_STREAM));
  stream.on("error", () => undefined);
  stream.end(
    envelope(toBinary(CallStreamRequestSchema, create(CallStreamRequestSchema, { invocation: { name: "wait" } }))),
  );
  await started.promise;
  await enough;
  expect(stream.closed).toBe(false);
  expect(served.registry.leases).toBe(1);
});

const GONE = {
  "a FIN": (socket: Socket) => void socket.end(),
  "a RST": (socket: Socket) => void socket.resetAndDestroy(),
} as const;

test.each(Object.entries(GONE))(
  "a client that leaves with %s ends its call over HTTP/2 [G-D02]",
  async (_what, leave) => {
    await using served = await serve();
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<unknown>();
    served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
    using raw = await rawSocket(served.port);
    raw.socket.write(frozenCall("wait"));
    await started.promise;
    leave(raw.socket);
    expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  },
);

test.each(Object.entries(GONE))("a client that leaves with %s ends its call over HTTP/1", async (_what, leave) => {
  await using served = await serve();
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
  using raw = await rawSocket(served.port);
  const body = '{"invocation":{"name":"wait"}}';
  raw.socket.write(
    `POST /toolgate.v1.ToolGatewayService/Call HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await started.promise;
  leave(raw.socket);
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
});
