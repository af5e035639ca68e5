import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Effect } from "../../gen/toolgate/v1/errors_pb.ts";
import { CallRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { type AnyClient, CLIENTS, collect, failureOf } from "./clients.ts";
import { completed, deaf, type Run } from "./fake-registry.ts";
import { answerOf, CALL, envelope, grpcHeaders, rawSession } from "./raw.ts";
import { grpcClients, PATIENT, serve } from "./serve.ts";

const second = { seconds: 1n, nanos: 0 };

/** The deadline each call of the tool got, in milliseconds from now. */
function recorder(into: number[], nowMs: () => number): Run {
  return async function* (_call, { deadlineMs }) {
    into.push(deadlineMs - nowMs());
    yield completed();
  };
}

test("the soonest of the RPC's, the invocation's, the tool's and the gateway's limit holds", async () => {
  const clock = createFakeClock();
  await using served = await serve({
    clock,
    limits: { requestBytes: 100_000, deadlineMs: 50_000, concurrentStreams: 10 },
  });
  const seen: number[] = [];
  served.registry.add({ name: "fast", defaultTimeoutMs: 40_000 }, recorder(seen, clock.now));
  served.registry.add({ name: "long", defaultTimeoutMs: 400_000 }, recorder(seen, clock.now));
  const { tools } = grpcClients(served.url);
  await tools.call({ invocation: { name: "long" } });
  await tools.call({ invocation: { name: "fast" } });
  await tools.call({ invocation: { name: "fast", timeout: { seconds: 30n, nanos: 0 } } });
  await tools.call({ invocation: { name: "fast", timeout: { seconds: 30n, nanos: 0 } } }, { timeoutMs: 20_000 });
  expect(seen).toEqual([50_000, 40_000, 30_000, expect.closeTo(20_000, -2)]);
});

test.each([
  ["gateway", { name: "deaf" }, 50, "the gateway's limit, `limits.deadline` in gateway.yaml"],
  ["tool", { name: "quick" }, 40, "the tool's `timeout.total`"],
  [
    "invocation",
    { name: "quick", timeout: { seconds: 0n, nanos: 30_000_000 } },
    30,
    "the caller's `invocation.timeout`",
  ],
])("a call over the %s's limit says whose limit it was [G-D01]", async (limit, invocation, ms, words) => {
  await using served = await serve({ limits: { requestBytes: 100_000, deadlineMs: 50, concurrentStreams: 10 } });
  served.registry.add({ name: "deaf" }, deaf);
  served.registry.add({ name: "quick", defaultTimeoutMs: 40 }, deaf);
  const failure = await failureOf(grpcClients(served.url).tools.call({ invocation }));
  expect(failure).toMatchObject({ code: Code.DeadlineExceeded, reason: "CALL_DEADLINE_EXCEEDED" });
  expect(failure.message).toBe(`the call took longer than ${ms} ms, which is ${words}`);
  expect(failure.metadata).toMatchObject({ limit, deadline_ms: String(ms) });
});

test("an RPC deadline is named too, by the gateway itself and not by the client's own timer", async () => {
  await using served = await serve();
  served.registry.add({ name: "deaf" }, deaf);
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(CALL, { "grpc-timeout": "150m" }));
  stream.end(envelope(toBinary(CallRequestSchema, create(CallRequestSchema, { invocation: { name: "deaf" } }))));
  const { trailers, headers } = await answerOf(stream);
  const status = { ...headers, ...trailers };
  expect(status["grpc-status"]).toBe("4");
  expect(decodeURIComponent(String(status["grpc-message"]))).toBe("the caller's RPC deadline of 150 ms passed");
});

test.each([
  ["application/grpc", { "grpc-timeout": "99999999H" }],
  ["application/grpc", { "grpc-timeout": "3000000S" }],
  ["application/json", { "connect-timeout-ms": "9999999999" }],
])("a deadline beyond 2^31 ms does not fire at once (%s)", async (type, headers) => {
  await using served = await serve();
  served.registry.add({ name: "slow" }, async function* () {
    await new Promise((resolve) => setTimeout(resolve, 100));
    yield completed();
  });
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(CALL, { "content-type": type, ...headers }));
  const message = create(CallRequestSchema, { invocation: { name: "slow" } });
  stream.end(type.includes("grpc") ? envelope(toBinary(CallRequestSchema, message)) : '{"invocation":{"name":"slow"}}');
  const answer = await answerOf(stream);
  expect(type.includes("grpc") ? answer.trailers["grpc-status"] : answer.status).toBe(
    type.includes("grpc") ? "0" : 200,
  );
});

test.each(["abc", "-5", "123456789S", "5"])("the malformed deadline %j is refused", async (value) => {
  await using served = await serve();
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(CALL, { "grpc-timeout": value }));
  stream.end(envelope(toBinary(CallRequestSchema, create(CallRequestSchema, { invocation: { name: "echo" } }))));
  const { trailers, headers } = await answerOf(stream);
  expect({ ...headers, ...trailers }["grpc-status"]).toBe("3");
});

test("a call may have acted when its deadline passes, unless the tool only reads", async () => {
  await using served = await serve();
  served.registry.add({ name: "write" }, deaf);
  served.registry.add({ name: "read", hints: { readOnly: true } }, deaf);
  served.registry.add({ name: "same", hints: { idempotent: true } }, deaf);
  const { tools } = grpcClients(served.url);
  const timeout = { seconds: 0n, nanos: 20_000_000 };
  const detail = async (name: string) => (await failureOf(tools.call({ invocation: { name, timeout } }))).detail;
  expect(await detail("write")).toMatchObject({ effect: Effect.UNKNOWN, retryable: false });
  expect(await detail("read")).toMatchObject({ effect: Effect.NONE, retryable: true });
  expect(await detail("same")).toMatchObject({ effect: Effect.UNKNOWN, retryable: true });
});

test("a tool that reacts to its deadline in time has the last word", async () => {
  await using served = await serve();
  served.registry.add({ name: "polite" }, async function* (_call, { signal }) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    yield completed();
  });
  const timeout = { seconds: 0n, nanos: 20_000_000 };
  const { result } = await grpcClients(served.url).tools.call({ invocation: { name: "polite", timeout } });
  expect(result?.content).toHaveLength(1);
});

test.each(Object.keys(CLIENTS))("%s gets the deadline's error while a stream runs", async (name) => {
  await using served = await serve();
  served.registry.add({ name: "chatty" }, async function* () {
    while (true) {
      yield { type: "progress", current: 1, total: undefined, message: "" };
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
  using client: AnyClient = CLIENTS[name]?.(served.url) ?? expect.unreachable();
  const invocation = { name: "chatty", timeout: { seconds: 0n, nanos: 150_000_000 } };
  const failure = await failureOf(collect(client.stream({ invocation })));
  expect(failure).toMatchObject({ code: Code.DeadlineExceeded, reason: "CALL_DEADLINE_EXCEEDED" });
  expect(failure.metadata["limit"]).toBe("invocation");
});

test("registering and examining end with the RPC deadline although the work ignores it", async () => {
  await using served = await serve();
  served.registry.holdRegistrations(new Promise(() => undefined));
  served.registry.diagnosis = () => new Promise(() => undefined);
  const { tools, operator } = grpcClients(served.url);
  const declaration = { case: "declarationYaml", value: "name: x" } as const;
  for (const work of [
    () => tools.register({ declaration }, { timeoutMs: 100 }),
    () => tools.register({ declaration, requestId: "r" }, { timeoutMs: 100 }),
    () => operator.diagnose({}, { timeoutMs: 100 }),
  ]) {
    expect((await failureOf(work())).code).toBe(Code.DeadlineExceeded);
  }
});

test("a reader that stays behind is cut off after the deadline, and the call is freed", async () => {
  await using served = await serve({ connection: { resetGraceMs: 200 } });
  const ended = Promise.withResolvers<void>();
  served.registry.add({ name: "flood" }, async function* () {
    try {
      while (true) yield { type: "delta", index: 0, text: "x".repeat(60_000) };
    } finally {
      ended.resolve();
    }
  });
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders("/toolgate.v1.ToolGatewayService/CallStream"));
  stream.on("error", () => undefined);
  stream.end(
    envelope(
      toBinary(CallRequestSchema, create(CallRequestSchema, { invocation: { name: "flood", timeout: second } })),
    ),
  );
  stream.pause();
  await new Promise((resolve) => stream.once("close", resolve));
  // ENHANCE_YOUR_CALM, which gRPC clients show as RESOURCE_EXHAUSTED.
  expect(stream.rstCode).toBe(11);
  await ended.promise;
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
});
