import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { createHttpAdapter, httpAdapter } from "../../../src/adapters/http/index.ts";
import type { Upstream } from "../../../src/core/adapter.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import {
  call,
  closed,
  configure,
  invoke,
  openTool,
  sendJson,
  startJsonUpstream,
  startUpstream,
  type TestUpstream,
  type ToolOptions,
} from "./fixture.ts";

/** An upstream that answers when a test says so. */
async function startHeldUpstream(): Promise<TestUpstream & { answer(target: string): void }> {
  const held = new Map<string, ServerResponse>();
  const upstream = await startUpstream((response, { target }) => void held.set(target, response));
  return {
    ...upstream,
    answer(target) {
      const response = held.get(target);
      if (response === undefined) throw new Error(`${target} was not asked for`);
      sendJson(response, 200, {});
    },
  };
}

async function arrived({ requests, nextRequest }: TestUpstream, count: number): Promise<void> {
  while (requests.length < count) await nextRequest();
}

function targets({ requests }: TestUpstream): string[] {
  return requests.map(({ target }) => target);
}

/** Opens tools that share an adapter, as those of one gateway do. */
function opener(pool: JsonObject, options: Partial<ToolOptions> = {}) {
  const adapter = options.adapter ?? createHttpAdapter();
  return (endpoint: string, keys: JsonObject = { pool }): Promise<Upstream> =>
    openTool({ ...options, keys: { endpoint, ...keys }, adapter });
}

test("tools of one origin share its connections, and those beyond the limit wait in the order they came", async () => {
  await using upstream = await startHeldUpstream();
  const open = opener({ max_connections: 2 });
  await using a = await open(`${upstream.origin}/a`);
  await using b = await open(`${upstream.origin}/b`);
  await using c = await open(`${upstream.origin}/c`, {});
  await using d = await open(`${upstream.origin}/d`);
  const calls = [call(a), call(b), call(c), call(d)];
  await arrived(upstream, 2);
  expect(targets(upstream)).toEqual(["/a", "/b"]);
  upstream.answer("/b");
  await calls[1];
  await arrived(upstream, 3);
  expect(targets(upstream)).toEqual(["/a", "/b", "/c"]);
  upstream.answer("/a");
  await arrived(upstream, 4);
  upstream.answer("/c");
  upstream.answer("/d");
  for (const { error } of await Promise.all(calls)) expect(error).toBeUndefined();
  expect(upstream.sockets).toHaveLength(2);
});

test("another origin is not held up by a full one", async () => {
  await using full = await startHeldUpstream();
  await using other = await startJsonUpstream();
  const open = opener({ max_connections: 1, max_waiting: 0 });
  await using slow = await open(`${full.origin}/a`);
  await using quick = await open(other.origin);
  const held = call(slow);
  await arrived(full, 1);
  expect((await call(quick)).error).toBeUndefined();
  full.answer("/a");
  await held;
});

test("a call that the line has no room for is refused at once, and nothing was sent", async () => {
  await using upstream = await startHeldUpstream();
  await using tool = await opener({ max_connections: 1, max_waiting: 1 })(`${upstream.origin}/a`, {
    method: "POST",
    pool: { max_connections: 1, max_waiting: 1 },
  });
  const [first, second] = [call(tool), call(tool)];
  await arrived(upstream, 1);
  const { error } = await call(tool);
  expect(error).toMatchObject({
    reason: "UPSTREAM_POOL_EXHAUSTED",
    status: "RESOURCE_EXHAUSTED",
    effect: "none",
    retryable: true,
    metadata: { tool: "order_status", limit: "max_waiting", max_connections: "1" },
  });
  expect(error?.message).toBe(
    `order_status: all 1 connections to ${upstream.origin} are in use (pool.max_connections), ` +
      "and 1 calls wait already (pool.max_waiting)",
  );
  expect(error?.modelMessage).not.toContain(upstream.origin);
  upstream.answer("/a");
  await first;
  await arrived(upstream, 2);
  upstream.answer("/a");
  await second;
});

test("the wait for a connection is part of the time to connect", async () => {
  await using upstream = await startHeldUpstream();
  const clock = createFakeClock();
  const timeouts = { connectMs: 500, readMs: 60_000 };
  await using tool = await opener({ max_connections: 1 }, { clock, timeouts })(`${upstream.origin}/a`);
  const first = call(tool);
  await arrived(upstream, 1);
  const second = call(tool);
  await clock.advance(499);
  expect(await Promise.race([second, Promise.resolve("waits")])).toBe("waits");
  await clock.advance(1);
  const { error } = await second;
  expect(error).toMatchObject({ reason: "UPSTREAM_POOL_EXHAUSTED", effect: "none", metadata: { limit: "connect" } });
  expect(error?.message).toContain("none came free within 500 ms (timeout.connect), at place 1 of the line");
  upstream.answer("/a");
  expect((await first).error).toBeUndefined();
  expect(clock.pending).toBe(0);
});

test("a call in the line ends at once when it is cancelled, given up or its tool is closed", async () => {
  await using upstream = await startHeldUpstream();
  const open = opener({ max_connections: 1 });
  await using tool = await open(`${upstream.origin}/a`);
  const closing = await open(`${upstream.origin}/b`);
  const held = call(tool);
  await arrived(upstream, 1);

  const controller = new AbortController();
  const cancelled = call(tool, {}, { signal: controller.signal });
  const events = invoke(tool)[Symbol.asyncIterator]();
  const givenUp = expect(events.next()).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
  const closedTool = call(closing);
  controller.abort(new GatewayError("CALL_CANCELLED", "the caller cancelled"));
  expect((await cancelled).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "none" });
  await events.return?.();
  await givenUp;
  await closing[Symbol.asyncDispose]();
  expect((await closedTool).error).toMatchObject({ reason: "GATEWAY_STOPPING", effect: "none" });

  upstream.answer("/a");
  expect((await held).error).toBeUndefined();
  expect(upstream.requests).toHaveLength(1);
});

test("the place of a call that times out, fails or is given up is free at once [U-D11]", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    if (target === "/reset") response.socket?.resetAndDestroy();
    else if (target === "/stream") response.writeHead(200, { "content-type": "text/plain" }).write("a");
    else if (target === "/quick") sendJson(response, 200, {});
  });
  const pool = { max_connections: 1, max_waiting: 0 };
  const adapter = createHttpAdapter();
  const open = opener(pool, { adapter });
  // None but this one is to be out of time on a busy machine.
  await using silent = await opener(pool, { adapter, timeouts: { readMs: 50 } })(`${upstream.origin}/silent`);
  await using reset = await open(`${upstream.origin}/reset`);
  await using quick = await open(`${upstream.origin}/quick`);
  const keys = { endpoint: `${upstream.origin}/stream`, pool };
  await using stream = await openTool({ keys, delivery: "incremental", adapter });
  for (let i = 0; i < 3; i++) {
    expect((await call(silent)).error?.reason).toBe("UPSTREAM_TIMEOUT");
    expect((await call(reset)).error?.reason).toBe("UPSTREAM_UNREACHABLE");
    expect((await call(quick)).error).toBeUndefined();
    for await (const _piece of invoke(stream)) break;
  }
});

test("no more connections are kept than the limit says, and a new one takes the place of an idle one", async () => {
  await using upstream = await startJsonUpstream();
  const open = opener({ max_connections: 3, max_idle: 1 });
  await using tool = await open(upstream.origin);
  await Promise.all([call(tool), call(tool), call(tool)]);
  expect(upstream.sockets).toHaveLength(3);
  const openSockets = (): number => upstream.sockets.filter((socket) => !socket.closed).length;
  await expect.poll(openSockets, { timeout: 20_000 }).toBe(1);
  await call(tool);
  expect(upstream.sockets).toHaveLength(3);

  const narrow = opener({ max_connections: 1 });
  await using careful = await narrow(`http://localhost:${upstream.port}`);
  await using trusting = await narrow(`http://localhost:${upstream.port}`, {
    pool: { max_connections: 1 },
    allow_private: true,
  });
  // They share the limit and no connection: what one may reach, the other may not.
  await call(careful);
  await call(trusting);
  await closed(upstream.sockets[3]);
  expect(upstream.sockets.slice(3).filter((socket) => !socket.closed)).toHaveLength(1);
});

test("an idle connection is kept for its time, whatever longer one the upstream names", async () => {
  await using upstream = await startUpstream((response) => {
    response.setHeader("keep-alive", "timeout=60");
    sendJson(response, 200, {});
  });
  await using tool = await openTool({ keys: { endpoint: upstream.origin }, pool: { idleMs: 100 } });
  await call(tool);
  await closed(upstream.sockets[0]);
  await call(tool);
  expect(upstream.sockets).toHaveLength(2);
});

test("a version that is replaced takes its limits back, and leaves the connections to the next", async () => {
  await using upstream = await startJsonUpstream();
  const open = opener({ max_connections: 1, max_waiting: 0 });
  const strict = await open(upstream.origin);
  await using loose = await open(upstream.origin, {});
  expect((await Promise.all([call(strict), call(loose)])).map(({ error }) => error?.reason)).toEqual([
    undefined,
    "UPSTREAM_POOL_EXHAUSTED",
  ]);
  await strict[Symbol.asyncDispose]();
  expect((await Promise.all([call(loose), call(loose)])).map(({ error }) => error?.reason)).toEqual([
    undefined,
    undefined,
  ]);
  expect(upstream.sockets).toHaveLength(2);
});

test("limits of a declaration go before those of the gateway", () => {
  const configured = configure({
    keys: { endpoint: "http://127.0.0.1/", pool: { max_waiting: 0 } },
    pool: { maxConnections: 10, maxWaiting: 20, maxIdle: 5 },
  });
  if (!configured.ok) throw new Error("refused");
  const settings = httpAdapter.explain(configured.config as never).filter(({ key }) => key.startsWith("pool."));
  expect(settings.map(({ key, value }) => `${key} ${value}`)).toEqual([
    "pool.max_connections 10",
    "pool.max_waiting 0",
    "pool.max_idle 5",
  ]);
});

test("a thousand calls in a line of a hundred connections all get their turn", async () => {
  await using upstream = await startJsonUpstream();
  await using tool = await opener({ max_connections: 100 })(upstream.origin);
  const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => call(tool)));
  expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([]);
  expect(upstream.requests).toHaveLength(1_000);
  expect(upstream.sockets.length).toBeLessThanOrEqual(100);
});
