import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { compressionGzip, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { CallRequestSchema, ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { CLIENTS, failureOf } from "./clients.ts";
import { completed, textResult } from "./fake-registry.ts";
import { heldClock, passUntil } from "./held-clock.ts";
import { answerOf, CALL, CALL_STREAM, envelope, grpcHeaders, LIST, rawSession, rawSocket } from "./raw.ts";
import { grpcClients, PATIENT, recordingLogger, serve } from "./serve.ts";

/** Where the server's first frame says its type: SETTINGS. */
const SETTINGS = new RegExp(`^[^]{3}${String.fromCharCode(4)}`);

/** That the gateway still serves. */
async function alive(url: string): Promise<void> {
  expect((await grpcClients(url).tools.get({ name: "echo" })).tool?.name).toBe("echo");
}

test.each(["a b[", "localhost:99999", "", "[::", "x%zz", "a@b:c@d"])(
  "the Host %j does no harm over HTTP/1",
  async (host) => {
    await using served = await serve();
    using raw = await rawSocket(served.port);
    const body = "{}";
    raw.socket.write(
      `POST ${LIST} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n${body}`,
    );
    await raw.closed;
    expect(raw.text()).toMatch(/^HTTP\/1\.1 (200|400)/);
    await alive(served.url);
  },
);

test("HTTP/1.0 without a Host does no harm", async () => {
  await using served = await serve();
  using raw = await rawSocket(served.port);
  raw.socket.write(`POST ${LIST} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`);
  await raw.closed;
  expect(raw.text()).toMatch(/^HTTP\/1\.1 200[^]*"name":"echo"/);
  await alive(served.url);
});

test.each(["localhost:99999", "[::", "x%zz", "a b["])(
  "the :authority %j does no harm over HTTP/2",
  async (authority) => {
    await using served = await serve();
    using session = rawSession(served.url);
    const stream = session.request({
      ":method": "POST",
      ":path": LIST,
      ":authority": authority,
      "content-type": "application/json",
    });
    stream.end("{}");
    const { status, rstCode } = await answerOf(stream);
    expect(status === 200 || rstCode !== 0).toBe(true);
    await alive(served.url);
  },
);

test("a hostile path or query does no harm", async () => {
  await using served = await serve();
  for (const path of [
    "//",
    "/%00",
    `${LIST}?%zz`,
    `${LIST}?encoding=json&message=%`,
    "/toolgate.v1.ToolGatewayService/",
  ]) {
    using raw = await rawSocket(served.port);
    raw.socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    await raw.closed;
    expect(raw.text()).toMatch(/^HTTP\/1\.1 (200|400|404|415)/);
  }
  await alive(served.url);
});

test("headers that come too slowly are cut with 408", async () => {
  await using served = await serve({ connection: { headersMs: 300 } });
  using raw = await rawSocket(served.port);
  raw.socket.write(`POST ${LIST} HTTP/1.1\r\nHost: x\r\nX-Slow: `);
  await raw.closed;
  expect(raw.text()).toMatch(/^HTTP\/1\.1 408/);
});

test.each(["", "P", "PRI * HTTP/2.0\r\n"])("a socket that is silent after %j is cut", async (beginning) => {
  const clock = heldClock(12_345);
  await using served = await serve({ clock, connection: { sniffMs: 12_345 } });
  using raw = await rawSocket(served.port);
  if (beginning !== "") raw.socket.write(beginning);
  await passUntil(clock, raw.closed);
  expect(raw.text()).toBe("");
  await alive(served.url);
});

test("a preface and a request that come byte by byte are understood", async () => {
  await using served = await serve();
  using raw = await rawSocket(served.port);
  for (const byte of "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
    raw.socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await raw.received(SETTINGS);
  using second = await rawSocket(served.port);
  for (const byte of "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") {
    second.socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await second.closed;
  expect(second.text()).toMatch(/200 OK[^]*ok/);
});

test("header fields over the limit are refused over both HTTP versions", async () => {
  await using served = await serve();
  using raw = await rawSocket(served.port);
  raw.socket.write(`GET /healthz HTTP/1.1\r\nHost: x\r\nX-Big: ${"x".repeat(20_000)}\r\n\r\n`);
  await raw.closed;
  expect(raw.text()).toMatch(/^HTTP\/1\.1 431/);
  using session = rawSession(served.url);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  expect(session.remoteSettings.maxHeaderListSize).toBe(16_384);
  const stream = session.request({ ":path": "/healthz", "x-big": "x".repeat(20_000) });
  stream.end();
  const { status, rstCode } = await answerOf(stream);
  expect(status === undefined || status === 431).toBe(true);
  expect(rstCode).not.toBe(0);
  await alive(served.url);
});

test("an HTTP/2 connection says how many streams it takes", async () => {
  await using served = await serve({ limits: { requestBytes: 1000, deadlineMs: 1000, concurrentStreams: 7 } });
  using session = rawSession(served.url);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(7);
});

test("a body of 64 MB is refused over HTTP/1 without a hang, and the limit is named [G-D05]", async () => {
  await using served = await serve();
  const answer = Promise.withResolvers<number | undefined>();
  let text = "";
  const headers = { "content-type": "application/json", "content-length": 64 * 1024 * 1024 };
  const request = httpRequest(`${served.url}${CALL}`, { method: "POST", headers }, (response) => {
    response.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    response.on("end", () => answer.resolve(response.statusCode));
  });
  // The gateway may cut the connection while the rest is still on its way.
  request.on("error", (error) => (text === "" ? answer.reject(error) : undefined));
  const piece = Buffer.alloc(1024 * 1024, 32);
  let left = 64;
  const write = (): void => {
    if (left-- > 0 && !request.destroyed) request.write(piece, write);
  };
  write();
  const status = await answer.promise;
  expect(status).toBe(429);
  expect(text).toContain("REQUEST_TOO_LARGE");
  expect(text).toContain("limits.request_bytes");
  await alive(served.url);
});

test.each(Object.keys(CLIENTS).filter((name) => !name.includes("fetch")))(
  "%s gets a request over the limit refused and the next one served",
  async (name) => {
    await using served = await serve({ limits: { requestBytes: 100_000, deadlineMs: 60_000, concurrentStreams: 100 } });
    using client = CLIENTS[name]?.(served.url) ?? expect.unreachable();
    const value = JSON.stringify({ text: "x".repeat(1_000_000) });
    const failure = await failureOf(client.call({ name: "echo", arguments: { case: "argumentsJson", value } }));
    expect(failure.code).toBe(Code.ResourceExhausted);
    expect(failure.reason).toBe("REQUEST_TOO_LARGE");
    expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
  },
);

test("a gzip bomb is refused by what it would become", async () => {
  await using served = await serve();
  using session = rawSession(served.url);
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const stream = session.request(grpcHeaders(CALL, { "grpc-encoding": "gzip" }));
  stream.end(envelope(bomb, 1));
  const { trailers, headers } = await answerOf(stream);
  expect({ ...headers, ...trailers }["grpc-status"]).toBe("8");
  await alive(served.url);
});

test("an unknown encoding is refused with the ones that are taken", async () => {
  await using served = await serve();
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(CALL, { "grpc-encoding": "br" }));
  stream.end(envelope(new Uint8Array([1]), 1));
  const { trailers, headers } = await answerOf(stream);
  const status = { ...headers, ...trailers };
  expect(status["grpc-status"]).toBe("12");
  expect(decodeURIComponent(String(status["grpc-message"]))).toContain("supported encodings are gzip");
});

test("an unknown JSON field is refused, by name", async () => {
  await using served = await serve();
  const response = await fetch(served.url + CALL, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"invocation":{"name":"echo","argumentsJsn":"{}"}}',
  });
  expect(response.status).toBe(400);
  const error = await response.json();
  expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining('"argumentsJsn"') });
  expect(error).toMatchObject({
    details: [{ type: "google.rpc.ErrorInfo", debug: { reason: "REQUEST_INVALID" } }, {}],
  });
});

test.each(["application/grpc", "application/grpc-web", "application/proto"])(
  "bytes that are no message are the caller's fault (%s)",
  async (type) => {
    await using served = await serve();
    using session = rawSession(served.url);
    const stream = session.request(grpcHeaders(CALL, { "content-type": type }));
    const garbage = new Uint8Array([0x0a, 0xff, 0xff]);
    stream.end(type === "application/proto" ? garbage : envelope(garbage));
    const { status, headers, trailers, body } = await answerOf(stream);
    const said = JSON.stringify({ ...headers, ...trailers }) + body.toString();
    expect(type === "application/proto" ? String(status) : said).toMatch(/400|grpc-status"?:\s?"?3/);
  },
);

test("a body that never comes does not hold a stream for good", async () => {
  const logger = recordingLogger();
  await using served = await serve({ logger, connection: { requestMs: 200, resetGraceMs: 100 } });
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(CALL));
  stream.write(Buffer.from([0, 0]));
  expect((await answerOf(stream)).rstCode).not.toBe(0);
  await alive(served.url);
});

test.each([CALL, CALL_STREAM])("an answer that is not taken is given up after a while (%s)", async (path) => {
  await using served = await serve({ connection: { answerMs: 200 } });
  using session = rawSession(served.url, { settings: { initialWindowSize: 0 } });
  const stream = session.request(grpcHeaders(path));
  stream.end(envelope(toBinary(CallRequestSchema, create(CallRequestSchema, { invocation: { name: "echo" } }))));
  const { status, body, rstCode } = await answerOf(stream);
  expect([status, body.length, rstCode]).toEqual([200, 0, 11]);
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  await alive(served.url);
});

test("a connection full of answers that nobody reads yet still serves a call", async () => {
  await using served = await serve({ drainMs: 0 });
  served.registry.add({ name: "big" }, async function* () {
    yield completed(textResult("x".repeat(700_000)));
  });
  using session = rawSession(served.url, { settings: { initialWindowSize: 1_000_000 } });
  const request = (name: string): Buffer =>
    envelope(toBinary(CallRequestSchema, create(CallRequestSchema, { invocation: { name } })));
  // Twice what Node keeps for a connection unless told otherwise; the window of the connection lets 64 KB through.
  const streams = Array.from({ length: 30 }, () => {
    const stream = session.request(grpcHeaders(CALL));
    stream.on("error", () => undefined).end(request("big"));
    return stream;
  });
  await Promise.all(streams.map((stream) => once(stream, "response")));
  const unary = session.request(grpcHeaders(CALL));
  unary.end(request("nothing"));
  expect((await answerOf(unary)).trailers["grpc-status"]).toBe("5");
});

test("a gzip request is understood, and small answers are not compressed where large ones are", async () => {
  await using served = await serve();
  const transport = createGrpcTransport({ baseUrl: served.url, sendCompression: compressionGzip, compressMinBytes: 1 });
  const client = createClient(ToolGatewayService, transport);
  const value = JSON.stringify({ text: "x".repeat(20_000) });
  const response = await client.call({ invocation: { name: "echo", arguments: { case: "argumentsJson", value } } });
  expect(response.result?.structuredJson).toBe(value);
  using session = rawSession(served.url);
  for (const [size, flag] of [
    [100, 0],
    [20_000, 1],
  ] as const) {
    const json = JSON.stringify({ text: "x".repeat(size) });
    const invocation = { name: "echo", arguments: { case: "argumentsJson", value: json } } as const;
    const stream = session.request(grpcHeaders(CALL, { "grpc-accept-encoding": "br,gzip" }));
    stream.end(envelope(toBinary(CallRequestSchema, create(CallRequestSchema, { invocation }))));
    const { body, headers } = await answerOf(stream);
    expect(headers["grpc-encoding"]).toBe("gzip");
    expect(body[0]).toBe(flag);
  }
});

const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

test("a caller that leaves inside of a streaming request is no fault of the gateway", async () => {
  const logger = recordingLogger();
  const served = await serve({ logger });
  {
    await using _ = served;
    for (let i = 0; i < 10; i++) {
      using raw = await rawSocket(served.port);
      const headers =
        "Host: x\r\nContent-Type: application/connect+json\r\nContent-Length: 100\r\nExpect: 100-continue";
      raw.socket.write(`POST ${CALL_STREAM} HTTP/1.1\r\n${headers}\r\n\r\n`);
      await raw.received(/^HTTP\/1\.1 100/);
      using session = rawSession(served.url);
      const stream = session.request(grpcHeaders(REFLECTION));
      stream.on("error", () => undefined).write(Buffer.from([0, 0]));
      // Answered behind the request, which the gateway has begun with then.
      await new Promise((resolve) => session.ping(resolve));
    }
    await alive(served.url);
  }
  // A stop waits for every RPC to be over.
  expect(logger.lines.filter(({ message }) => message === "rpc-failed")).toEqual([]);
});

test("a later request of a stream that is no message is the caller's fault", async () => {
  const logger = recordingLogger();
  await using served = await serve({ logger });
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(REFLECTION));
  stream.end(Buffer.concat([envelope(new Uint8Array()), envelope(Uint8Array.of(0x0a, 0x7f))]));
  expect((await answerOf(stream)).trailers["grpc-status"]).toBe(String(Code.InvalidArgument));
  expect(logger.lines).toEqual([]);
});
