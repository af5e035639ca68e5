import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { errors } from "undici";
import { expect, test } from "vitest";
import { brokenConnection } from "../../../src/adapters/shared/lost-call.ts";
import { connectProblem } from "../../../src/adapters/shared/network/connect-problem.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import {
  call,
  closed,
  invoke,
  openTool,
  sendJson,
  startJsonUpstream,
  startRawUpstream,
  startUpstream,
} from "./fixture.ts";

test("a connection that does not come about ends at timeout.connect, without effect [S2-57]", async () => {
  const clock = createFakeClock();
  // Takes the connection and never answers the TLS greeting.
  await using upstream = await startRawUpstream(() => undefined);
  const endpoint = upstream.origin.replace("http:", "https:");
  await using tool = await openTool({ keys: { endpoint, method: "POST" }, clock, timeouts: { connectMs: 3_000 } });
  const outcome = call(tool);
  await clock.advance(2_999);
  await clock.advance(1);
  const { error } = await outcome;
  expect(error).toMatchObject({
    reason: "UPSTREAM_TIMEOUT",
    effect: "none",
    retryable: true,
    metadata: { limit: "connect" },
  });
  expect(error?.message).toBe(`order_status: ${endpoint} had no connection for 3000 ms (timeout.connect)`);
  expect(error?.modelMessage).not.toContain("127.0.0.1");
  expect(clock.pending).toBe(0);
});

test.for([
  ["no headers", ""],
  ["half of the headers", "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"],
  ["early hints alone", "HTTP/1.1 103 Early Hints\r\n\r\n"],
] as const)("%s end at timeout.read [S2-58, U-D11]", async ([, bytes]) => {
  for (const [method, effect] of [
    ["GET", "none"],
    ["POST", "unknown"],
  ] as const) {
    const clock = createFakeClock();
    const arrived = Promise.withResolvers<void>();
    await using upstream = await startRawUpstream((socket) => void socket.write(bytes, () => arrived.resolve()));
    await using tool = await openTool({
      keys: { endpoint: upstream.origin, method },
      clock,
      timeouts: { readMs: 10_000 },
    });
    const outcome = call(tool);
    await arrived.promise;
    await clock.advance(10_000);
    const { error } = await outcome;
    expect(error).toMatchObject({
      reason: "UPSTREAM_TIMEOUT",
      effect,
      retryable: effect === "none",
      metadata: { limit: "read" },
    });
    expect(error?.message).toContain("did not begin to answer for 10000 ms (timeout.read)");
    await closed(upstream.sockets[0]);
    expect(clock.pending).toBe(0);
  }
});

test("silence within the body ends at timeout.idle, in both deliveries [U-D11]", async () => {
  for (const delivery of ["conclusive", "incremental"] as const) {
    const clock = createFakeClock();
    await using upstream = await startUpstream((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: a\n\n");
    });
    await using tool = await openTool({
      keys: { endpoint: upstream.origin },
      clock,
      delivery,
      timeouts: { idleMs: 1_000, readMs: 9_000 },
    });
    const outcome = call(tool);
    await upstream.nextRequest();
    // The idle limit is watched once the answer has begun, and is sooner than the read limit.
    while (clock.nextInMs === undefined || clock.nextInMs > 1_000) await clock.advance(0);
    await clock.advance(1_000);
    const { error, deltas } = await outcome;
    expect(error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit: "idle" } });
    expect(deltas).toEqual(delivery === "incremental" ? ["a\n"] : []);
    await closed(upstream.sockets[0]);
    expect(clock.pending).toBe(0);
  }
});

test("an upstream that drips is ended by the deadline of the call [U-D11]", async () => {
  await using upstream = await startUpstream((response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(timer));
  });
  await using tool = await openTool({
    keys: { endpoint: upstream.origin, method: "POST" },
    timeouts: { idleMs: 2_000 },
  });
  const controller = new AbortController();
  setTimeout(() => controller.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "took longer than 200 ms")), 200);
  const { error } = await call(tool, {}, { signal: controller.signal });
  expect(error).toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    message: "took longer than 200 ms",
    effect: "unknown",
    retryable: false,
  });
  await closed(upstream.sockets[0]);
});

test("no limit runs while a reader takes its time with what it has", async () => {
  const clock = createFakeClock();
  await using upstream = await startUpstream((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: a\n\n");
  });
  await using tool = await openTool({
    keys: { endpoint: upstream.origin },
    clock,
    delivery: "incremental",
    timeouts: { connectMs: 1_000, readMs: 1_000, idleMs: 1_000 },
  });
  const events = invoke(tool, {}, { explain: true })[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ type: "exchange" });
  await clock.advance(10_000);
  expect((await events.next()).value).toEqual({ type: "upstream-delta", text: "a\n" });
  await clock.advance(10_000);
  const next = events.next();
  await clock.advance(999);
  const failed = expect(next).rejects.toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit: "idle" } });
  await clock.advance(1);
  await failed;
});

test("every byte counts as activity, comments too", async () => {
  const clock = createFakeClock();
  let write: ((text: string) => void) | undefined;
  await using upstream = await startUpstream((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": \n");
    write = (text) => response.write(text);
  });
  await using tool = await openTool({
    keys: { endpoint: upstream.origin },
    clock,
    delivery: "incremental",
    timeouts: { idleMs: 1_000 },
  });
  const events = invoke(tool)[Symbol.asyncIterator]();
  const first = events.next();
  await upstream.nextRequest();
  for (let i = 0; i < 5; i++) {
    while (clock.nextInMs === undefined || clock.nextInMs > 1_000) await clock.advance(0);
    await clock.advance(900);
    write?.(": ping\n");
    // The timer is set anew when it finds that its time moved on.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  write?.("data: a\n\n");
  expect((await first).value).toEqual({ type: "upstream-delta", text: "a\n" });
  await events.return?.();
});

test("a cancelled call ends at once in every phase and closes its connection, telling what may have happened", async () => {
  const reason = new GatewayError("CALL_CANCELLED", "the caller cancelled");
  for (const [method, effect] of [
    ["GET", "none"],
    ["POST", "unknown"],
  ] as const) {
    for (const bytes of ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"]) {
      const arrived = Promise.withResolvers<void>();
      await using upstream = await startRawUpstream((socket) => void socket.write(bytes, () => arrived.resolve()));
      await using tool = await openTool({ keys: { endpoint: upstream.origin, method } });
      const controller = new AbortController();
      const outcome = call(tool, {}, { signal: controller.signal });
      await arrived.promise;
      controller.abort(reason);
      const { error } = await outcome;
      expect(error).toMatchObject({ reason: "CALL_CANCELLED", effect });
      await closed(upstream.sockets[0]);
    }
  }
});

test("a call cancelled while it connects has no effect and leaves no attempt behind", async () => {
  await using upstream = await startRawUpstream(() => undefined);
  await using tool = await openTool({ keys: { endpoint: upstream.origin.replace("http:", "https:"), method: "POST" } });
  const controller = new AbortController();
  const outcome = call(tool, {}, { signal: controller.signal });
  while (upstream.sockets.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort(new GatewayError("CALL_CANCELLED", "the caller cancelled"));
  expect((await outcome).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "none" });
  await closed(upstream.sockets[0]);
});

test("a call whose signal is over before it begins reaches nobody", async () => {
  await using upstream = await startJsonUpstream();
  await using tool = await openTool({ keys: { endpoint: upstream.origin } });
  const signal = AbortSignal.abort(new GatewayError("CALL_CANCELLED", "the caller cancelled"));
  expect((await call(tool, {}, { signal })).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "none" });
  expect(upstream.sockets).toHaveLength(0);
});

test("no listener stays on the signal of a call", async () => {
  await using upstream = await startJsonUpstream();
  await using tool = await openTool({ keys: { endpoint: upstream.origin } });
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  Object.assign(signal, {
    addEventListener: (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    },
    removeEventListener: (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    },
  });
  for (let i = 0; i < 3; i++) await call(tool, {}, { signal });
  expect(listeners).toBe(0);
});

test("an address that refuses is named, and the call had no effect", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  await using tool = await openTool({ keys: { endpoint: `http://127.0.0.1:${port}`, method: "POST" } });
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", retryable: true });
  expect(error?.message).toBe(
    `order_status: no connection to http://127.0.0.1:${port}: tried 127.0.0.1:${port} ECONNREFUSED`,
  );
  expect(error?.modelMessage).toBe("order_status: the upstream cannot be reached; nothing was changed");
});

test("localhost is tried in both families, and so is each literal address [U-D13]", async () => {
  for (const [host, hosts] of [
    ["127.0.0.1", ["localhost", "127.0.0.1"]],
    ["::1", ["localhost", "[::1]"]],
  ] as const) {
    await using upstream = await startUpstream((response) => sendJson(response, 200, {}), host);
    for (const name of hosts) {
      await using tool = await openTool({ keys: { endpoint: `http://${name}:${upstream.port}/x` } });
      expect((await call(tool)).result?.value).toEqual({});
      expect(upstream.requests.at(-1)?.headers.host).toBe(`${name}:${upstream.port}`);
    }
  }
  await using tool = await openTool({ keys: { endpoint: "http://localhost:1/x" } });
  expect((await call(tool)).error?.message).toBe(
    "order_status: no connection to http://localhost:1: tried 127.0.0.1:1 ECONNREFUSED, [::1]:1 ECONNREFUSED",
  );
});

test("a request that cannot be made is a fault of the gateway, not of the upstream", () => {
  const lost = {
    tool: "t",
    origin: "http://127.0.0.1",
    effect: "none",
    phase: "connecting",
    receivedBytes: 0,
  } as const;
  const timeouts = { connectMs: 1, readMs: 1, idleMs: 1 };
  expect(brokenConnection({ ...lost, timeouts }, new errors.InvalidArgumentError("x")).reason).toBe("INTERNAL");
});

test("a name without an address and a certificate that is not accepted are told as such", () => {
  const withCode = (code: string): Error => Object.assign(new Error("x"), { code });
  expect(connectProblem(withCode("ENOTFOUND"))).toBe("its name has no address (ENOTFOUND)");
  expect(connectProblem(withCode("DEPTH_ZERO_SELF_SIGNED_CERT"))).toBe(
    "its TLS certificate or handshake is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)",
  );
  expect(connectProblem(withCode("EMFILE"))).toBe("EMFILE");
  expect(connectProblem(undefined)).toBe("unknown problem");
});
