import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { expect, onTestFinished, test, vi } from "vitest";
import { Health, HealthCheckRequestSchema } from "../../../gen/health/v1/health_pb.ts";
import type { InvocationSchema } from "../../../gen/toolgate/v1/call_pb.ts";
import {
  CallRequestSchema,
  CallStreamRequestSchema,
  GetRequestSchema,
  ListRequestSchema,
  RegisterRequestSchema,
  ToolGatewayService,
  WatchRequestSchema,
} from "../../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { FrontDoorOptions } from "../../../src/service/front-door.ts";
import { GrpcFront } from "../../../src/service/grpc/grpc-front.ts";
import { completed, deaf, textResult } from "../fake-registry.ts";
import { CALL, envelope, grpcHeaders, rawSession } from "../raw.ts";
import { PATIENT, recordingLogger, type Served, serve } from "../serve.ts";
import { ask, type FrontName, type WireAnswer, type WireRequest } from "./both-fronts.ts";

const { call, callStream, get, list, register, watch } = ToolGatewayService.method;

type Invocation = MessageInitShape<typeof InvocationSchema>;

const unary = (invocation: Invocation): Buffer =>
  envelope(toBinary(CallRequestSchema, create(CallRequestSchema, { invocation })));
const streamed = (invocation: Invocation): Buffer =>
  envelope(toBinary(CallStreamRequestSchema, create(CallStreamRequestSchema, { invocation })));
const listRequest = envelope(toBinary(ListRequestSchema, create(ListRequestSchema, {})));
const bytewise = (bytes: Buffer): Buffer[] => [...bytes].map((byte) => Buffer.from([byte]));

const LIMIT = 2_000;

/** A gateway with tools for every kind of end. */
async function serveTools(options: Partial<FrontDoorOptions> = {}): Promise<Served> {
  const served = await serve({
    limits: { requestBytes: LIMIT, deadlineMs: 3_600_000, concurrentStreams: 100 },
    ...options,
  });
  const { registry } = served;
  registry.add({ name: "deaf" }, deaf);
  registry.add({ name: "refused" }, async function* () {
    const violations = [{ field: "/城市", description: "is missing: 100 %\nof it", reason: "MISSING" }];
    throw new GatewayError("ARGUMENTS_INVALID", "argument `城市` is missing; 100 % of it, a/b, c: d", {
      metadata: { tool: "refused" },
      violations,
    });
  });
  registry.add({ name: "busy" }, async function* () {
    throw new GatewayError("RATE_LIMITED", "too many calls", { retryAfterMs: 1_500 });
  });
  registry.add({ name: "broken" }, async function* () {
    throw new TypeError("a secret of the gateway");
  });
  registry.add({ name: "large" }, async function* () {
    yield completed(textResult("much of the same ".repeat(2_000)));
  });
  registry.add({ name: "talks", delivery: "incremental" }, async function* () {
    for (let n = 0; n < 50; n++) yield { type: "delta", index: 0, text: `piece ${n} 一\n` };
    yield completed({ ...textResult(""), content: [] });
  });
  registry.add({ name: "breaks off", delivery: "incremental" }, async function* () {
    yield { type: "delta", index: 0, text: "half" };
    throw new GatewayError("UPSTREAM_ANSWER_LOST", "the answer was lost", { effect: "unknown" });
  });
  return served;
}

/** Asks both fronts, and shows that the lean one took what it was meant to take. */
async function both(url: string, request: WireRequest): Promise<Record<FrontName, WireAnswer>> {
  return { lean: await ask(url, "lean", request), connect: await ask(url, "connect", request) };
}

const gzipHeaders = { "grpc-accept-encoding": "identity,deflate,gzip" };

/** Requests that the lean front serves by itself. */
const SERVED: Readonly<Record<string, WireRequest>> = {
  "a call": {
    method: call,
    body: [unary({ name: "echo", arguments: { case: "argumentsJson", value: '{"城市":1}' } })],
  },
  "a call in pieces": { method: call, body: bytewise(unary({ name: "echo" })) },
  "a call as application/grpc+proto": {
    method: call,
    headers: { "content-type": "application/grpc+proto" },
    body: [unary({ name: "echo" })],
  },
  "a call in capitals": {
    method: call,
    headers: { "content-type": "Application/GRPC" },
    body: [unary({ name: "echo" })],
  },
  "a call with the encoding identity": {
    method: call,
    headers: { "grpc-encoding": "identity" },
    body: [unary({ name: "echo" })],
  },
  "a call without te": { method: call, headers: { te: undefined }, body: [unary({ name: "echo" })] },
  "a call with metadata": {
    method: call,
    headers: { "x-trace-bin": "AP+A", "x-many": ["a", "b"], traceparent: "nonsense" },
    body: [unary({ name: "echo" })],
  },
  "a large answer for a caller that knows gzip": {
    method: call,
    headers: gzipHeaders,
    body: [unary({ name: "large" })],
  },
  "a small answer for a caller that knows gzip": {
    method: call,
    headers: gzipHeaders,
    body: [unary({ name: "echo" })],
  },
  "an error for a caller that knows gzip": { method: call, headers: gzipHeaders, body: [unary({ name: "busy" })] },
  "a large answer for a caller that knows no gzip": {
    method: call,
    headers: { "grpc-accept-encoding": "identity,br" },
    body: [unary({ name: "large" })],
  },
  "a stream for a caller that knows gzip": {
    method: callStream,
    headers: gzipHeaders,
    body: [streamed({ name: "large" })],
  },
  "an empty message": { method: Health.method.check, body: [envelope(new Uint8Array())] },
  "a method of another service that fails": {
    method: Health.method.check,
    body: [envelope(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service: "nothing" })))],
  },
  "a list": { method: list, body: [envelope(toBinary(ListRequestSchema, create(ListRequestSchema, { pageSize: 2 })))] },
  "a refused registration": {
    method: register,
    body: [envelope(toBinary(RegisterRequestSchema, create(RegisterRequestSchema, {})))],
  },
  "a stream of events": { method: callStream, body: [streamed({ name: "talks" })] },
  "a stream that breaks off": { method: callStream, body: [streamed({ name: "breaks off" })] },
  "an error with details": { method: call, body: [unary({ name: "refused" })] },
  "an error of a stream with details": { method: callStream, body: [streamed({ name: "refused" })] },
  "an error with a time to wait": { method: call, body: [unary({ name: "busy" })] },
  "a fault of the gateway": { method: call, body: [unary({ name: "broken" })] },
  "a fault of the gateway in a stream": { method: callStream, body: [streamed({ name: "broken" })] },
  "an unknown tool": { method: call, body: [unary({ name: "nothing" })] },
  "a request without invocation": { method: call, body: [envelope(new Uint8Array())] },
  "a resume of nothing": {
    method: callStream,
    body: [
      envelope(
        toBinary(
          CallStreamRequestSchema,
          create(CallStreamRequestSchema, { resume: { callId: "0190b0a0-0000-7000-8000-000000000000" } }),
        ),
      ),
    ],
  },
  "a filter that is none": {
    method: watch,
    body: [envelope(toBinary(WatchRequestSchema, create(WatchRequestSchema, { filter: { states: [99 as never] } })))],
  },
  "a deadline that passes": { method: call, headers: { "grpc-timeout": "30m" }, body: [unary({ name: "deaf" })] },
  "a deadline of a stream that passes": {
    method: callStream,
    headers: { "grpc-timeout": "30000u" },
    body: [streamed({ name: "deaf" })],
  },
  "a deadline of the invocation that passes": {
    method: call,
    body: [unary({ name: "deaf", timeout: { seconds: 0n, nanos: 30_000_000 } })],
  },
  "no body": { method: call },
  "no body for a stream": { method: watch },
  "headers that say there is no body": { method: list, headersOnly: true },
  "half a head": { method: call, body: [Buffer.from([0, 0])] },
  "half a message": { method: call, body: [unary({ name: "echo" }).subarray(0, 8)] },
  "a message and a half": { method: call, body: [unary({ name: "echo" }), Buffer.from([0, 0, 0])] },
  "two messages": { method: call, body: [unary({ name: "echo" }), unary({ name: "echo" })] },
  "two messages in one piece": { method: list, body: [Buffer.concat([listRequest, listRequest])] },
  "two messages for a stream": { method: callStream, body: [streamed({ name: "echo" }), streamed({ name: "echo" })] },
  "a message that is too large": { method: call, body: [envelope(randomBytes(LIMIT + 1))] },
  "a message as large as may be": { method: call, body: [envelope(randomBytes(LIMIT))] },
  "a head that promises too much": { method: call, body: [Buffer.from([0, 255, 255, 255, 255])], open: true },
  "a second message that is too large": {
    method: call,
    body: [unary({ name: "echo" }), envelope(randomBytes(LIMIT + 1))],
  },
  "bytes that are no message": { method: call, body: [envelope(Buffer.from([0x0a, 0xff, 0xff]))] },
  "bytes that are no message, and more to come": {
    method: callStream,
    body: [envelope(Buffer.from([0x0a, 0xff, 0xff]))],
    open: true,
  },
  "text that is no UTF-8": { method: get, body: [envelope(Buffer.from([0x0a, 0x02, 0xc3, 0x28]))] },
  "a field that nobody knows": { method: list, body: [envelope(Buffer.from([0xf8, 0x7f, 0x01]))] },
  "a message that claims to be compressed": { method: call, body: [envelope(gzipSync("x"), 1)] },
  "a frame with an unknown flag": { method: call, body: [envelope(unary({ name: "echo" }).subarray(5), 128)] },
};

test.each(Object.entries(SERVED))("%s is answered alike by the lean front and by Connect", async (_name, request) => {
  const take = vi.spyOn(GrpcFront.prototype, "take");
  onTestFinished(() => take.mockRestore());
  await using served = await serveTools();
  const { lean, connect } = await both(served.url, request);
  expect(take.mock.results.map(({ value }) => value)).toEqual([true, false]);
  expect(lean).toEqual(connect);
  expect(lean.status).toBe(200);
  expect(lean.trailers["grpc-status"]).toMatch(/^\d+$/);
});

/** Requests that are not the lean front's to serve. */
const LEFT: Readonly<Record<string, OutgoingHeaders>> = {
  "JSON messages": { "content-type": "application/grpc+json" },
  "compressed messages": { "grpc-encoding": "gzip" },
  "an encoding that nobody knows": { "grpc-encoding": "snappy" },
  "a malformed deadline": { "grpc-timeout": "soon" },
  "two deadlines": { "grpc-timeout": ["1S", "2S"] },
  "gRPC-Web": { "content-type": "application/grpc-web+proto" },
  "another content type": { "content-type": "text/plain" },
  "a content type with parameters": { "content-type": "application/grpc; charset=utf-8" },
  "no content type": { "content-type": undefined },
  "another method of HTTP": { ":method": "PUT" },
  "a page in a browser": { origin: "https://elsewhere.example" },
  "an expectation": { expect: "100-continue" },
  "a method that does not exist": { ":path": "/toolgate.v1.ToolGatewayService/Nothing" },
  "a service that does not exist": { ":path": "/nothing.v1.Nothing/Call" },
};

type OutgoingHeaders = NonNullable<WireRequest["headers"]>;

test.each(Object.entries(LEFT))("%s: left to Connect, before anything is read", async (_name, headers) => {
  const take = vi.spyOn(GrpcFront.prototype, "take");
  onTestFinished(() => take.mockRestore());
  await using served = await serveTools();
  const answer = await ask(served.url, "lean", { method: call, headers, body: [unary({ name: "echo" })] });
  expect(take.mock.results.map(({ value }) => value)).toEqual([false]);
  expect(answer.status).toBeGreaterThanOrEqual(200);
});

test("an answer that is too large is refused alike, as a whole and in a stream", async () => {
  await using served = await serve();
  served.registry.add({ name: "wide", description: "x".repeat(33 * 1024 * 1024) });
  for (const request of [
    { method: get, body: [envelope(toBinary(GetRequestSchema, create(GetRequestSchema, { name: "wide" })))] },
    { method: watch, body: [envelope(new Uint8Array())] },
  ]) {
    const { lean, connect } = await both(served.url, request);
    expect(lean).toEqual(connect);
    expect(lean.trailers["grpc-message"]).toMatch(/^the answer is larger than the gateway sends/);
  }
});

test("a compressed request is served through Connect as before", async () => {
  await using served = await serveTools();
  const body = [envelope(gzipSync(unary({ name: "echo" }).subarray(5)), 1)];
  const answer = await ask(served.url, "lean", { method: call, headers: { "grpc-encoding": "gzip" }, body });
  expect(answer.trailers).toEqual({ "grpc-status": "0" });
});

test("a fault of the gateway is logged alike, with its cause", async () => {
  const logger = recordingLogger();
  await using served = await serveTools({ logger });
  await both(served.url, { method: call, body: [unary({ name: "broken" })] });
  const failed = logger.lines.filter(({ message }) => message === "rpc-failed");
  expect(failed.map(({ fields }) => fields["method"])).toEqual(Array(2).fill("toolgate.v1.ToolGatewayService/Call"));
  for (const { fields } of failed) expect(fields["error"]).toMatchObject({ message: "a secret of the gateway" });
});

test("who calls is asked alike, before the body is read, and a refusal stops the body", async () => {
  const asked: unknown[] = [];
  await using served = await serveTools({
    authenticate: async (headers, { address, encrypted }) => {
      const names = ["X-Many", "x-one", "nothing", "x-trace-bin", "cookie"];
      asked.push([names.map((name) => headers.get(name)), address, encrypted]);
      throw new GatewayError("PERMISSION_DENIED", "not you");
    },
  });
  const headers = { "x-many": ["a", "b"], "x-one": "1", "x-trace-bin": "AP+A", cookie: ["a=1", "b=2"] };
  const body = [envelope(new Uint8Array(100)).subarray(0, 20)];
  const { lean, connect } = await both(served.url, { method: call, headers, body, open: true });
  expect(lean).toEqual(connect);
  expect(lean.trailers).toMatchObject({ "grpc-status": "7", "grpc-message": "not you" });
  expect(asked[0]).toEqual([["a, b", "1", null, "AP+A", "a=1; b=2"], "127.0.0.1", false]);
  expect(asked[1]).toEqual(asked[0]);
});

test("a body of which the rest does not come is given up alike", async () => {
  await using served = await serveTools({ connection: { requestMs: 100, resetGraceMs: 50 } });
  const body = [unary({ name: "echo" }).subarray(0, 8)];
  const { lean, connect } = await both(served.url, { method: call, body, open: true });
  expect(lean).toEqual(connect);
  expect(lean).toMatchObject({ status: undefined, rstCode: 11 });
});

test.each(["lean", "connect"] as const)("a caller that resets its stream ends the call (%s)", async (front) => {
  await using served = await serveTools();
  const { promise: reason, resolve } = Promise.withResolvers<unknown>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  served.registry.add({ name: "waits" }, async function* (_call, { signal }) {
    begin();
    await new Promise((abort) => signal.addEventListener("abort", abort));
    resolve(signal.reason);
    yield completed();
  });
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(front === "lean" ? CALL : `${CALL}?`));
  stream.on("error", () => undefined);
  stream.end(unary({ name: "waits" }));
  await begun;
  stream.close(8);
  expect(await reason).toMatchObject({ reason: "CALL_CANCELLED" });
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
});

test("a stop ends what runs alike", async () => {
  for (const [method, body] of [
    [call, unary({ name: "deaf" })],
    [callStream, streamed({ name: "deaf" })],
    [watch, envelope(new Uint8Array())],
  ] as const) {
    const answers: WireAnswer[] = [];
    for (const front of ["lean", "connect"] as const) {
      await using served = await serveTools({ drainMs: 50 });
      const answer = ask(served.url, front, { method, body: [body] });
      await expect.poll(() => served.registry.leases + served.registry.watches, PATIENT).toBe(1);
      await served.door.stop();
      answers.push(await answer);
    }
    const [lean, connect] = answers;
    expect(lean).toEqual(connect);
    expect(lean?.trailers["grpc-status"]).toBe("14");
  }
});
