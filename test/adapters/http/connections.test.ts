import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
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

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

test("calls one after the other share a connection, calls at once have their own", async () => {
  await using upstream = await startJsonUpstream();
  await using tool = await openTool({ keys: { endpoint: upstream.origin } });
  for (let i = 0; i < 5; i++) expect((await call(tool)).error).toBeUndefined();
  expect(upstream.sockets).toHaveLength(1);
  await Promise.all(Array.from({ length: 8 }, () => call(tool)));
  expect(upstream.sockets).toHaveLength(8);
  expect(upstream.requests).toHaveLength(13);
});

test("a failure leaves the connection in use, a call that is given up does not", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    if (target === "/?mode=slow") response.writeHead(200, { "content-type": "text/event-stream" }).write("data: a\n\n");
    else sendJson(response, 404, { message: "none" });
  });
  const inputSchema = { type: "object" };
  await using tool = await openTool({ keys: { endpoint: upstream.origin }, inputSchema, delivery: "incremental" });
  for (let i = 0; i < 3; i++) expect((await call(tool)).result?.failure?.upstreamCode).toBe(404);
  expect(upstream.sockets).toHaveLength(1);
  for await (const event of invoke(tool, { mode: "slow" })) {
    expect(event).toEqual({ type: "upstream-delta", text: "a\n" });
    break;
  }
  await closed(upstream.sockets[0]);
  expect((await call(tool)).result?.failure?.upstreamCode).toBe(404);
  expect(upstream.sockets).toHaveLength(2);
});

test("an idle connection that the upstream closed is not used again [U-D08]", async () => {
  await using upstream = await startJsonUpstream();
  await using tool = await openTool({ keys: { endpoint: upstream.origin, method: "POST" } });
  for (let i = 1; i <= 3; i++) {
    expect((await call(tool)).error).toBeUndefined();
    const socket = upstream.sockets.at(-1);
    socket?.end();
    await closed(socket);
    // The client's end has to see it too.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(upstream.requests).toHaveLength(3);
});

test("a connection lost in the moment of its reuse is made up for where that is safe [U-D08]", async () => {
  for (const method of ["GET", "POST"]) {
    let requests = 0;
    await using upstream = await startRawUpstream((socket) => {
      requests += 1;
      // The second request on a connection meets a server that has just given it up.
      if (requests === 2) socket.resetAndDestroy();
      else socket.write(ANSWER);
    });
    await using tool = await openTool({ keys: { endpoint: upstream.origin, method } });
    expect((await call(tool)).error).toBeUndefined();
    const { error } = await call(tool);
    expect(error?.reason).toBe(method === "GET" ? undefined : "UPSTREAM_ANSWER_LOST");
    expect(requests).toBe(method === "GET" ? 3 : 2);
  }
});

test("a connection that is lost on its first request is not tried again", async () => {
  let requests = 0;
  await using upstream = await startRawUpstream((socket) => {
    requests += 1;
    socket.resetAndDestroy();
  });
  await using tool = await openTool({ keys: { endpoint: upstream.origin } });
  expect((await call(tool)).error?.reason).toBe("UPSTREAM_UNREACHABLE");
  expect(requests).toBe(1);
});

test("an answer that closes its connection does not disturb the next call", async () => {
  await using upstream = await startUpstream((response) => {
    response.setHeader("connection", "close");
    sendJson(response, 200, {});
  });
  await using tool = await openTool({ keys: { endpoint: upstream.origin, method: "POST" } });
  for (let i = 0; i < 5; i++) expect((await call(tool)).error).toBeUndefined();
  expect(upstream.sockets).toHaveLength(5);
});

test("disposing ends running calls with what they may have changed, and frees every socket", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    if (target === "/quick") sendJson(response, 200, {});
  });
  const quick = await openTool({ keys: { endpoint: `${upstream.origin}/quick` } });
  await call(quick);
  await quick[Symbol.asyncDispose]();
  const tool = await openTool({ keys: { endpoint: upstream.origin, method: "POST" } });
  const running = [call(tool), call(tool)];
  while (upstream.requests.length < 3) await upstream.nextRequest();
  await tool[Symbol.asyncDispose]();
  await tool[Symbol.asyncDispose]();
  for (const { error } of await Promise.all(running)) {
    expect(error).toMatchObject({ reason: "GATEWAY_STOPPING", effect: "unknown" });
  }
  await Promise.all(upstream.sockets.map(closed));
  expect((await call(tool)).error?.reason).toBe("GATEWAY_STOPPING");
});

test("return() while an event is awaited cancels at once", async () => {
  await using upstream = await startUpstream(() => undefined);
  await using tool = await openTool({ keys: { endpoint: upstream.origin } });
  const events = invoke(tool)[Symbol.asyncIterator]();
  const next = events.next();
  const awaited = expect(next).rejects.toBeInstanceOf(GatewayError);
  await upstream.nextRequest();
  await events.return?.();
  await awaited;
  await closed(upstream.sockets[0]);
});

test("500 calls ended at random moments leave nothing behind [R-D07]", { timeout: 180_000 }, async () => {
  await using upstream = await startUpstream((response, { target }) => {
    response.on("error", () => undefined);
    if (target.endsWith("stream")) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const timer = setInterval(() => response.write("data: x\n\n"), 1);
      response.on("close", () => clearInterval(timer));
    } else if (target.endsWith("reset")) response.destroy();
    else setTimeout(() => sendJson(response, 200, {}), 5);
  });
  const tool = await openTool({
    keys: { endpoint: `${upstream.origin}/{kind}` },
    params: { kind: { type: "string" } },
    delivery: "incremental",
  });
  const kinds = ["stream", "reset", "slow"];
  const one = async (i: number): Promise<void> => {
    const controller = new AbortController();
    const stop = setTimeout(
      () => controller.abort(new GatewayError("CALL_CANCELLED", "cancelled")),
      Math.random() * 20,
    );
    const { error, result } = await call(tool, { kind: kinds[i % 3] ?? "" }, { signal: controller.signal });
    clearTimeout(stop);
    expect(error === undefined).toBe(result !== undefined);
  };
  for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 50 }, (_, i) => one(i)));
  await tool[Symbol.asyncDispose]();
  await Promise.all(upstream.sockets.map(closed));
});
