import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createBrowserTransport } from "../../clients/typescript/src/browser.ts";
import { type CallEvent, createToolgateClient, ToolgateError } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { deferred, gatewayError, type StreamResponse, startFakeGateway } from "./fake-gateway.ts";

const started: StreamResponse = { sequence: 0n, event: { case: "started", value: { callId: "c1" } } };

function output(sequence: bigint, text: string): StreamResponse {
  return { sequence, event: { case: "output", value: { index: 0, delta: { case: "text", value: text } } } };
}

/** Reads one stream that the gateway answers with these messages. */
async function read(responses: (signal: AbortSignal) => AsyncIterable<StreamResponse>): Promise<{
  events: CallEvent[];
  error: ToolgateError | undefined;
}> {
  await using gateway = await startFakeGateway({
    gateway: {
      async *callStream(_request, context) {
        yield* responses(context.signal);
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const events: CallEvent[] = [];
  try {
    for await (const event of createToolgateClient(transport).callStream("tail")) events.push(event);
  } catch (error) {
    if (error instanceof ToolgateError) return { events, error };
    throw error;
  }
  return { events, error: undefined };
}

test("a stream gives its events in order, without heartbeats, and ends after completed", async () => {
  const { events, error } = await read(async function* () {
    yield started;
    yield output(1n, "one ");
    yield { sequence: 2n, event: { case: "heartbeat", value: {} } };
    yield { sequence: 3n, event: { case: "progress", value: { current: 1, total: 2, message: "half" } } };
    yield { sequence: 4n, event: { case: "log", value: { level: "info", message: "line" } } };
    yield { sequence: 5n, event: { case: undefined } };
    yield { sequence: 6n, event: { case: "output", value: { delta: { case: "data", value: new Uint8Array([1]) } } } };
    yield { sequence: 7n, event: { case: "queued", value: { limit: 'group "aws"', position: 3 } } };
    yield {
      sequence: 8n,
      event: { case: "completed", value: { stats: { attempts: 1, queued: { seconds: 2n, nanos: 500_000_000 } } } },
    };
  });
  expect(error).toBeUndefined();
  expect(events).toMatchObject([
    { type: "started", callId: "c1" },
    { type: "output", text: "one ", data: undefined },
    { type: "progress", current: 1, total: 2, message: "half" },
    { type: "log", level: "info", message: "line" },
    { type: "output", text: "", data: new Uint8Array([1]) },
    { type: "queued", limit: 'group "aws"', position: 3 },
    { type: "completed", outcome: { callId: "c1", attempts: 1, queuedMs: 2_500 } },
  ]);
});

test("a stream that ends cleanly without completed is an error with unknown effect", async () => {
  const { events, error } = await read(async function* () {
    yield started;
    yield output(1n, "half of");
  });
  expect(events).toHaveLength(2);
  expect(error).toMatchObject({ reason: "STREAM_INCOMPLETE", effect: "unknown", callId: "c1" });
});

test("a missing message and a message after completed are errors", async () => {
  const gap = await read(async function* () {
    yield started;
    yield output(2n, "lost");
  });
  expect(gap.error).toMatchObject({ reason: "STREAM_BROKEN", callId: "c1" });
  expect(gap.error?.message).toBe("message 1 of the stream is missing, got 2");

  const late = await read(async function* () {
    yield started;
    yield { sequence: 1n, event: { case: "completed", value: {} } };
    yield output(2n, "late");
  });
  expect(late.error).toMatchObject({
    reason: "STREAM_BROKEN",
    message: "the gateway sent a message after `completed`",
  });
});

test("an error in the middle of a stream keeps the gateway's reason and the call's id", async () => {
  const { events, error } = await read(async function* () {
    yield started;
    throw gatewayError(Code.DeadlineExceeded, "UPSTREAM_TIMEOUT", "idle for 10 s", { metadata: { limit: "idle" } });
  });
  expect(events).toHaveLength(1);
  expect(error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit: "idle" }, callId: "c1" });
});

test("a connection that is cut during a stream is an error with unknown effect", async () => {
  await using gateway = await startFakeGateway({
    gateway: {
      async *callStream(_request, context) {
        yield started;
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const events = createToolgateClient(transport).callStream("tail");
  expect((await events.next()).value).toMatchObject({ type: "started" });
  gateway.cut();
  await expect(events.next()).rejects.toMatchObject({
    reason: "GATEWAY_CONNECTION_LOST",
    effect: "unknown",
    callId: "c1",
  });
});

for (const [title, open] of [
  ["the browser's transport", (baseUrl: string) => createBrowserTransport({ baseUrl })],
  ["Connect over HTTP/1.1", (baseUrl: string) => createNodeTransport({ baseUrl, protocol: "connect" })],
] as const) {
  test(`a stream that a proxy ends early is an error with unknown effect over ${title}`, async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "application/connect+proto" });
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const events = createToolgateClient(open(`http://127.0.0.1:${port}`)).callStream("tail");
    await expect(events.next()).rejects.toMatchObject({ reason: "GATEWAY_CONNECTION_LOST", effect: "unknown" });
    server.closeAllConnections();
    server.close();
  });
}

test("an address where no gateway answers gives an error that says so", async () => {
  const server = createServer((_request, response) => response.end("<html>"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  using transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${port}` });
  await expect(createToolgateClient(transport).get("t")).rejects.toMatchObject({ reason: "GATEWAY_CONNECTION_LOST" });
  const browser = createToolgateClient(createBrowserTransport({ baseUrl: `http://127.0.0.1:${port}` }));
  await expect(browser.get("t")).rejects.toMatchObject({ status: "UNKNOWN" });
  server.closeAllConnections();
  server.close();
});

test("leaving the loop cancels the call at the gateway, on one connection that stays usable", async () => {
  const { promise: cancelled, resolve } = deferred<number>();
  await using gateway = await startFakeGateway({
    gateway: {
      async *callStream(_request, context) {
        let sent = 0;
        context.signal.addEventListener("abort", () => resolve(sent));
        yield started;
        for (; !context.signal.aborted; sent++) {
          yield output(BigInt(sent + 1), "x");
          await new Promise((go) => setTimeout(go, 1));
        }
      },
      get: () => ({ tool: { name: "t" } }),
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const client = createToolgateClient(transport);
  for await (const event of client.callStream("tail")) if (event.type === "output") break;
  await cancelled;
  expect((await client.get("t")).name).toBe("t");
});

test("return() cancels even while a read is pending", async () => {
  const { promise: cancelled, resolve } = deferred<void>();
  await using gateway = await startFakeGateway({
    gateway: {
      async *callStream(_request, context) {
        yield started;
        await new Promise<void>((done) => context.signal.addEventListener("abort", () => done()));
        resolve();
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const events = createToolgateClient(transport).callStream("tail");
  await events.next();
  const pending = events.next();
  pending.catch(() => undefined);
  await events.return?.();
  await cancelled;
  await expect(pending).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
});

test("the caller's signal ends a stream that says nothing", async () => {
  await using gateway = await startFakeGateway({
    gateway: {
      async *callStream(_request, context) {
        yield started;
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const controller = new AbortController();
  const events = createToolgateClient(transport).callStream("tail", {}, { signal: controller.signal });
  await events.next();
  const pending = events.next();
  controller.abort();
  await expect(pending).rejects.toMatchObject({ reason: "CALL_CANCELLED", callId: "c1" });
});

test("a stream that nobody reads is never opened", async () => {
  let opened = 0;
  await using gateway = await startFakeGateway({
    gateway: {
      async *callStream() {
        opened++;
        yield started;
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  await createToolgateClient(transport).callStream("tail").return?.();
  expect(opened).toBe(0);
});
