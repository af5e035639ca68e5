import { constants, createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GetResponseSchema } from "../../clients/typescript/src/gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type Tool, ToolSchema } from "../../clients/typescript/src/gen/toolgate/v1/tool_pb.ts";
import { createToolgateClient, ToolgateError } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";

/** A gRPC server that answers Get and an empty CallStream, after it has refused the first streams. */
async function startRefusing(
  refusals: number,
): Promise<AsyncDisposable & { url: string; bodies: Buffer[]; seen(): number }> {
  let streams = 0;
  const bodies: Buffer[] = [];
  const server = createServer();
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    if (++streams <= refusals) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    else answer(stream, String(headers[":path"]), bodies);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    seen: () => streams,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(stream: ServerHttp2Stream, path: string, bodies: Buffer[]): void {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    bodies.push(Buffer.concat(pieces));
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    const tool: Tool = create(ToolSchema, { name: "t" });
    if (path.endsWith("/Get"))
      stream.write(grpcMessage(toBinary(GetResponseSchema, create(GetResponseSchema, { tool }))));
    stream.end();
  });
}

function grpcMessage(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

test("a request whose stream the server refused is sent again until it is taken", async () => {
  await using server = await startRefusing(3);
  using transport = createNodeTransport({ baseUrl: server.url });
  expect((await createToolgateClient(transport).get("t")).name).toBe("t");
  expect(server.seen()).toBe(4);
});

test("a refused streamed call is sent again with its whole request", async () => {
  await using server = await startRefusing(2);
  using transport = createNodeTransport({ baseUrl: server.url });
  const events = createToolgateClient(transport).callStream("tail_log", { lines: 5 });
  // The fake has no events to give; what counts is what it was sent.
  await expect(events.next()).rejects.toMatchObject({ reason: "STREAM_INCOMPLETE" });
  expect(server.seen()).toBe(3);
  expect(server.bodies[0]?.toString()).toContain('{"lines":5}');
});

test("a server that refuses every stream is an error that says nothing happened", async () => {
  await using server = await startRefusing(Number.POSITIVE_INFINITY);
  using transport = createNodeTransport({ baseUrl: server.url });
  const error: unknown = await createToolgateClient(transport)
    .call("t")
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ToolgateError);
  expect(error).toMatchObject({ reason: "GATEWAY_UNREACHABLE", effect: "none", retryable: true });
  expect(server.seen()).toBe(6);
});

test("a stream that breaks in any other way is not sent again", async () => {
  let streams = 0;
  const server = createServer();
  server.on("stream", (stream) => {
    streams++;
    stream.on("error", () => undefined);
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  using transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  await expect(createToolgateClient(transport).call("t")).rejects.toMatchObject({
    reason: "GATEWAY_CONNECTION_LOST",
    effect: "unknown",
  });
  expect(streams).toBe(1);
  server.close();
});

test("waiting to send a refused request again ends with the caller's signal", async () => {
  await using server = await startRefusing(Number.POSITIVE_INFINITY);
  using transport = createNodeTransport({ baseUrl: server.url });
  const call = createToolgateClient(transport).call("t", {}, { timeoutMs: 10_000, signal: AbortSignal.timeout(60) });
  await expect(call).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
  expect(server.seen()).toBeLessThan(6);
});

test("interceptors run from the first, outermost, to the retry, innermost: they see one request and its end", async () => {
  await using server = await startRefusing(2);
  const seen: string[] = [];
  const interceptor =
    (name: string): Interceptor =>
    (next) =>
    async (request) => {
      seen.push(`${name} asks`);
      const response = await next(request);
      seen.push(`${name} answers`);
      return response;
    };
  using transport = createNodeTransport({
    baseUrl: server.url,
    interceptors: [interceptor("first"), interceptor("second")],
  });
  await createToolgateClient(transport).get("t");
  expect(server.seen()).toBe(3);
  expect(seen).toEqual(["first asks", "second asks", "second answers", "first answers"]);
});
