import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { CallStreamResponse } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { CallContext, ToolCall, UpstreamExchange } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { collect, failureOf } from "./clients.ts";
import { completed, deaf, json, textResult } from "./fake-registry.ts";
import { grpcClients, PATIENT, recordingLogger, serve } from "./serve.ts";

const exchange: UpstreamExchange = {
  method: "GET",
  url: "http://up/order",
  requestHeaders: [["authorization", "***"]],
  requestBody: "",
  status: 200,
  responseHeaders: [],
  firstByteMs: 3,
};

/** Names of the events, in order. */
function cases(messages: readonly CallStreamResponse[]): (string | undefined)[] {
  return messages.map(({ event }) => event.case);
}

test("`started` comes at once, with the call id and the deadline, while the tool is still silent", async () => {
  await using served = await serve();
  served.registry.add({ name: "deaf", defaultTimeoutMs: 30_000 }, deaf);
  const { tools } = grpcClients(served.url);
  for await (const { event } of tools.callStream({ invocation: { name: "deaf" } })) {
    if (event.case !== "started") return expect.unreachable();
    expect(event.value.callId).toMatch(/^[0-9a-f-]{36}$/);
    const leftMs = Number(event.value.deadline?.seconds) * 1000 - Date.now();
    expect(leftMs).toBeGreaterThan(20_000);
    expect(leftMs).toBeLessThan(31_000);
    break;
  }
});

test("a silent tool gives heartbeats, and the sequence has no gaps [S2-97]", async () => {
  await using served = await serve();
  served.registry.add({ name: "slow" }, async function* () {
    yield { type: "delta", index: 0, text: "a" };
    await new Promise((resolve) => setTimeout(resolve, 450));
    yield completed();
  });
  const { tools } = grpcClients(served.url);
  const heartbeat = { seconds: 0n, nanos: 100_000_000 };
  const messages = await collect(tools.callStream({ invocation: { name: "slow" }, heartbeat }));
  expect(cases(messages).slice(0, 3)).toEqual(["started", "output", "heartbeat"]);
  expect(cases(messages).at(-1)).toBe("completed");
  expect(messages.map(({ sequence }) => sequence)).toEqual(messages.map((_, i) => BigInt(i)));
});

test("a heartbeat of 0 means none, and one below 100 ms is refused", async () => {
  await using served = await serve();
  served.registry.add({ name: "slow" }, async function* () {
    await new Promise((resolve) => setTimeout(resolve, 200));
    yield completed();
  });
  const { tools } = grpcClients(served.url);
  const invocation = { name: "slow" };
  const silent = await collect(tools.callStream({ invocation, heartbeat: { seconds: 0n, nanos: 0 } }));
  expect(cases(silent)).toEqual(["started", "completed"]);
  const failure = await failureOf(collect(tools.callStream({ invocation, heartbeat: { seconds: 0n, nanos: 1 } })));
  expect(failure).toMatchObject({ reason: "REQUEST_INVALID", fields: ["heartbeat"] });
});

test("a long delta arrives in pieces of at most 64 KiB [G-D04]", async () => {
  await using served = await serve();
  const text = "订单".repeat(100_000);
  served.registry.add({ name: "long" }, async function* () {
    yield { type: "delta", index: 0, text };
    yield completed({ ...textResult(""), content: [] });
  });
  const messages = await collect(grpcClients(served.url).tools.callStream({ invocation: { name: "long" } }));
  const pieces = messages.flatMap(({ event }) => (event.case === "output" ? [event.value.delta.value ?? ""] : []));
  expect(pieces.join("")).toBe(text);
  expect(Math.max(...pieces.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(65_536);
});

test("Call gives as its result what CallStream would have streamed", async () => {
  await using served = await serve();
  served.registry.add({ name: "tail" }, async function* () {
    yield { type: "delta", index: 0, text: "one " };
    yield { type: "delta", index: 0, text: "two" };
    yield completed(textResult("the rest"));
  });
  const { result } = await grpcClients(served.url).tools.call({ invocation: { name: "tail" } });
  expect(result?.content.map(({ part }) => part.value)).toEqual(["one two", "the rest"]);
});

test("the tool gets the call as it was asked for, with its context", async () => {
  const logger = recordingLogger();
  await using served = await serve({ logger });
  const seen: { call: ToolCall; context: CallContext }[] = [];
  served.registry.add({ name: "see" }, async function* (call, context) {
    seen.push({ call, context });
    context.logger.info("seen");
    yield completed();
  });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const context = { sessionId: "s", turnId: "t", toolCallId: "c", taskId: "k", attributes: { user: "u" } };
  const { callId } = await grpcClients(served.url).tools.call(
    {
      invocation: {
        name: "see",
        arguments: { case: "argumentsJson", value: json({ id: 1 }) },
        maxLength: 9,
        explain: true,
        context,
      },
    },
    { headers: { traceparent } },
  );
  expect(seen[0]?.call).toEqual({ tool: "see", arguments: { id: 1 }, validateOnly: false, maxLength: 9 });
  expect(seen[0]?.context).toMatchObject({
    callId,
    principal: { id: "anonymous" },
    attempt: 1,
    explain: true,
    sessionId: "s",
    turnId: "t",
    toolCallId: "c",
    taskId: "k",
    traceparent,
  });
  expect(logger.lines.find(({ message }) => message === "seen")?.fields).toEqual({ attributes: { user: "u" } });
});

test("a traceparent that is none is not passed on", async () => {
  await using served = await serve();
  const seen: (string | undefined)[] = [];
  served.registry.add({ name: "see" }, async function* (_call, { traceparent }) {
    seen.push(traceparent);
    yield completed();
  });
  await grpcClients(served.url).tools.call({ invocation: { name: "see" } }, { headers: { traceparent: "junk" } });
  expect(seen).toEqual([undefined]);
});

test("a call that is only validated has no result, unary and in a stream", async () => {
  await using served = await serve();
  const { tools } = grpcClients(served.url);
  const invocation = { name: "echo", validateOnly: true };
  const response = await tools.call({ invocation });
  expect(response.result).toBeUndefined();
  expect(response.stats?.attempts).toBe(0);
  const last = (await collect(tools.callStream({ invocation }))).at(-1)?.event;
  expect(last?.case === "completed" && last.value.result === undefined).toBe(true);
});

test("exchanges come as an explanation, only where one was asked for", async () => {
  await using served = await serve();
  served.registry.add({ name: "up" }, async function* () {
    yield { type: "exchange", exchange };
    yield completed();
  });
  const { tools } = grpcClients(served.url);
  const explained = await tools.call({ invocation: { name: "up", explain: true } });
  expect(explained.explanation?.exchanges).toMatchObject([
    { method: "GET", url: "http://up/order", status: 200, requestHeaders: [{ name: "authorization", value: "***" }] },
  ]);
  expect((await tools.call({ invocation: { name: "up" } })).explanation).toBeUndefined();
  const last = (await collect(tools.callStream({ invocation: { name: "up", explain: true } }))).at(-1)?.event;
  expect(last?.case === "completed" ? last.value.explanation?.exchanges.length : 0).toBe(1);
});

test("a call that pins another contract is refused with the digest now in force", async () => {
  await using served = await serve();
  const { tools } = grpcClients(served.url);
  const failure = await failureOf(tools.call({ invocation: { name: "echo", contractDigest: "old" } }));
  expect(failure).toMatchObject({
    code: Code.FailedPrecondition,
    reason: "CONTRACT_CHANGED",
    metadata: { tool: "echo", contract_digest: "digest-echo" },
  });
  await tools.call({ invocation: { name: "echo", contractDigest: "digest-echo" } });
});

test("an unknown tool is named with the nearest ones, and a disabled one is told apart", async () => {
  await using served = await serve();
  served.registry.add({ name: "off" }, undefined, { state: "disabled", reason: "" });
  const { tools } = grpcClients(served.url);
  const unknown = await failureOf(tools.call({ invocation: { name: "ecko" } }));
  expect(unknown).toMatchObject({ code: Code.NotFound, reason: "TOOL_NOT_FOUND", metadata: { nearest: "echo" } });
  expect(unknown.detail?.callId).toBe("");
  expect((await failureOf(tools.call({ invocation: { name: "off" } }))).reason).toBe("TOOL_DISABLED");
});

test("a tool's own failure is an answer", async () => {
  await using served = await serve();
  const failure = {
    reason: "TOOL_FAILED",
    message: "locked",
    upstreamCode: 200,
    retryable: false,
    upstreamFault: false,
  } as const;
  served.registry.add({ name: "no" }, async function* () {
    yield completed({ ...textResult(""), content: [], failure });
  });
  const { result } = await grpcClients(served.url).tools.call({ invocation: { name: "no" } });
  expect(result?.failure).toMatchObject({ reason: "TOOL_FAILED", message: "locked", upstreamCode: 200 });
});

test("a fault of the gateway tells the caller nothing and the log everything", async () => {
  const logger = recordingLogger();
  await using served = await serve({ logger });
  served.registry.add({ name: "bug" }, async function* () {
    yield { type: "log", level: "info", message: "before" };
    throw new TypeError("secret at /etc/passwd");
  });
  const { tools } = grpcClients(served.url);
  for (const work of [
    () => tools.call({ invocation: { name: "bug" } }),
    () => collect(tools.callStream({ invocation: { name: "bug" } })),
  ]) {
    logger.lines.length = 0;
    const failure = await failureOf(work());
    expect(failure).toMatchObject({ code: Code.Internal, reason: "INTERNAL", message: "internal error" });
    const [line] = logger.lines;
    expect(line?.message).toBe("rpc-failed");
    expect(line?.fields["method"]).toMatch(/^toolgate\.v1\.ToolGatewayService\/Call/);
    expect(line?.fields["callId"]).toBe(failure.detail?.callId);
    expect(line?.fields["error"]).toBeInstanceOf(TypeError);
  }
});

test("an answer that cannot be written is a fault of the gateway, told to the log", async () => {
  const logger = recordingLogger();
  await using served = await serve({ logger });
  served.registry.add({ name: "odd" }, async function* () {
    yield { type: "completed", result: textResult("x"), effect: "none", attempts: -1 };
  });
  const { tools } = grpcClients(served.url);
  for (const work of [
    () => tools.call({ invocation: { name: "odd" } }),
    () => collect(tools.callStream({ invocation: { name: "odd" } })),
  ]) {
    logger.lines.length = 0;
    const failure = await failureOf(work());
    expect(failure).toMatchObject({ code: Code.Internal, reason: "INTERNAL", message: "internal error" });
    expect(logger.lines).toMatchObject([{ message: "rpc-failed", fields: { callId: failure.detail?.callId } }]);
    expect(String(logger.lines[0]?.fields["error"])).toContain("attempts");
  }
});

test("a tool that ends without a result is a fault of the gateway", async () => {
  await using served = await serve();
  served.registry.add({ name: "empty" }, async function* () {
    yield { type: "log", level: "info", message: "nothing more" };
  });
  expect((await failureOf(grpcClients(served.url).tools.call({ invocation: { name: "empty" } }))).reason).toBe(
    "INTERNAL",
  );
});

test("an error keeps what the tool knew of its effect", async () => {
  await using served = await serve();
  served.registry.add({ name: "lost" }, async function* () {
    yield { type: "log", level: "info", message: "sent" };
    throw new GatewayError("UPSTREAM_ANSWER_LOST", "the answer was lost", { effect: "unknown" });
  });
  const failure = await failureOf(grpcClients(served.url).tools.call({ invocation: { name: "lost" } }));
  expect(failure.code).toBe(Code.Unknown);
  expect(failure.detail?.effect).toBe(3);
});

test("a result larger than one message is refused with the mend [G-D04]", async () => {
  await using served = await serve();
  served.registry.add({ name: "huge" }, async function* () {
    yield completed(textResult("x".repeat(5 * 1024 * 1024)));
  });
  const failure = await failureOf(grpcClients(served.url).tools.call({ invocation: { name: "huge" } }));
  expect(failure).toMatchObject({ code: Code.ResourceExhausted, reason: "RESULT_TOO_LARGE" });
  expect(failure.message).toContain("max_length");
});

test("after a call nothing of it is left", async () => {
  const clock = createFakeClock();
  await using served = await serve({ clock });
  const { tools } = grpcClients(served.url);
  await tools.call({ invocation: { name: "echo" } });
  const idle = clock.pending;
  await tools.call({ invocation: { name: "echo", timeout: { seconds: 5n, nanos: 0 } } }, { timeoutMs: 10_000 });
  await collect(tools.callStream({ invocation: { name: "echo" } }));
  await expect.poll(() => clock.pending, PATIENT).toBe(idle);
  expect(served.registry.leases).toBe(0);
});

test("a caller that accepts input hears what a tool asks, and its answer reaches the tool", async () => {
  await using served = await serve();
  const seen: ToolCall[] = [];
  served.registry.add({ name: "ask", kind: "mcp" }, async function* (call) {
    seen.push(call);
    const needsInput = { state: "h1", requestsJson: '{"q1":{"kind":"form"}}', expiresInMs: 1_500 };
    const result = { ...textResult(""), content: [] };
    yield completed(call.continuation === undefined ? { ...result, needsInput } : textResult("done"));
  });
  const { tools } = grpcClients(served.url);
  const asked = await tools.call({ invocation: { name: "ask", acceptsInput: true } });
  expect(asked.result?.needsInput).toMatchObject({
    state: "h1",
    requestsJson: '{"q1":{"kind":"form"}}',
    expiresIn: { seconds: 1n, nanos: 500_000_000 },
  });
  const continuation = { state: "h1", inputsJson: '{"q1":{"action":"accept","content":{"n":1}}}' };
  const done = await tools.call({ invocation: { name: "ask", continuation } });
  expect(done.result?.content[0]?.part).toEqual({ case: "text", value: "done" });
  expect(seen).toMatchObject([
    { acceptsInput: true },
    { continuation: { state: "h1", answers: new Map([["q1", { action: "accept", content: { n: 1 } }]]) } },
  ]);
  served.registry.add({ name: "never", kind: "http" });
  const refused = await failureOf(tools.call({ invocation: { name: "never", continuation } }));
  expect(refused.reason).toBe("CONTINUATION_NOT_FOUND");
});
