import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttp2, createSecureServer } from "node:http2";
import { type AddressInfo, connect, createServer as createTcp, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createGrpcAdapter } from "../../../src/adapters/grpc/index.ts";
import { call, closed, invoke } from "../http/fixture.ts";
import { CERTIFICATE, KEY } from "../http/tls-fixture.ts";
import { FOLDER, frame, openTool, order, type RawServer, reply, startRaw } from "./fixture.ts";

const answering = (): Promise<RawServer> => startRaw((got) => reply(got, [order()]));

test("tools of one server share a connection, and it is closed with the last of them", async () => {
  await using server = await answering();
  const adapter = createGrpcAdapter({ environment: {}, folder: FOLDER });
  const one = await openTool({ adapter, grpc: { address: server.address } });
  const two = await openTool({ adapter, grpc: { address: server.address }, name: "other" });
  await Promise.all([call(one), call(two), call(one)]);
  await call(two);
  expect(server.sockets).toHaveLength(1);
  await one[Symbol.asyncDispose]();
  expect((await call(two)).result?.value).toMatchObject({ orderId: "A1" });
  await two[Symbol.asyncDispose]();
  await closed(server.sockets[0]);
});

test("a server that says goodbye costs no call, and a stream over the old connection ends as it should [G-D03]", async () => {
  let calls = 0;
  await using server = await startRaw((got) => {
    if (got.headers[":path"]?.endsWith("WatchOrder") === true) {
      got.stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      got.stream.once("wantTrailers", () => got.stream.sendTrailers({ "grpc-status": "0" }));
      got.stream.write(frame(order()));
      return;
    }
    calls += 1;
    reply(got, [order()]);
    if (calls % 3 === 0) got.stream.session?.goaway(0);
  });
  await using relay = await startBlackhole(server.address);
  const adapter = createGrpcAdapter({ environment: {}, folder: FOLDER });
  const method = "shop.v1.OrderService/WatchOrder";
  await using watch = await openTool({ adapter, grpc: { address: relay.address, method }, delivery: "incremental" });
  await using get = await openTool({ adapter, grpc: { address: relay.address } });
  const events = invoke(watch)[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ type: "upstream-delta" });
  let most = 0;
  for (let i = 0; i < 100; i++) {
    expect((await call(get)).result?.value).toMatchObject({ orderId: "A1" });
    most = Math.max(most, relay.open());
  }
  expect(relay.connections()).toBeGreaterThan(30);
  // That of the stream, the one that serves, and those whose end is under way.
  expect(most).toBeLessThanOrEqual(6);
  server.calls[0]?.stream.end();
  expect((await events.next()).value).toMatchObject({ type: "upstream-result", result: { effect: "committed" } });
});

test("calls at once keep to how many streams the server takes", async () => {
  const most: number[] = [];
  let open = 0;
  const settings = { maxConcurrentStreams: 4 };
  await using server = await startRaw((got) => {
    open += 1;
    most.push(open);
    setImmediate(() => {
      open -= 1;
      reply(got, [order()]);
    });
  }, createHttp2({ settings }));
  await using tool = await openTool({ grpc: { address: server.address } });
  const outcomes = await Promise.all(Array.from({ length: 200 }, () => call(tool)));
  expect(outcomes.every(({ result }) => result?.value !== undefined)).toBe(true);
  expect(server.sockets.length).toBeLessThanOrEqual(8);
  expect(Math.max(...most)).toBeLessThanOrEqual(32);
});

test("a connection that died while nobody used it is noticed before it gets a call [G-D09]", async () => {
  await using server = await answering();
  await using proxy = await startBlackhole(server.address);
  let nowMs = 0;
  const clock = {
    now: () => Date.now(),
    monotonicMs: () => nowMs,
    // The only timer that runs out is that of the sign of life.
    after: (delayMs: number, task: () => void) => {
      const timer = setTimeout(task, delayMs === 2_000 ? 20 : 600_000);
      return { [Symbol.dispose]: () => clearTimeout(timer) };
    },
  };
  await using tool = await openTool({ grpc: { address: proxy.address }, clock });
  await call(tool);
  proxy.swallow();
  nowMs += 60_000;
  const { result } = await call(tool);
  expect(result?.value).toMatchObject({ orderId: "A1" });
  expect(proxy.connections()).toBe(2);
});

test("a connection that a limit of time was spent on is given up where it gives no sign of life [G-D09]", async () => {
  await using server = await answering();
  await using relay = await startBlackhole(server.address);
  const readMs = 12_345;
  let spentMs = 0;
  let dead = false;
  const clock = {
    now: () => Date.now(),
    monotonicMs: () => spentMs,
    // Once the connection is dead, the limit of time is over soon, and so is the wait for a sign of life.
    after: (delayMs: number, task: () => void) => {
      const spend = (): void => {
        spentMs += delayMs;
        task();
      };
      const soon = dead && (delayMs === readMs || delayMs === 5_000);
      const timer = setTimeout(spend, soon ? 10 : 600_000);
      return { [Symbol.dispose]: () => clearTimeout(timer) };
    },
  };
  await using tool = await openTool({ grpc: { address: relay.address }, clock, timeouts: { readMs } });
  await call(tool);
  relay.swallow();
  dead = true;
  expect((await call(tool)).error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit: "read" } });
  await relay.cut();
  dead = false;
  expect((await call(tool)).result?.value).toMatchObject({ orderId: "A1" });
});

test("a connection that nobody uses is closed after a time", async () => {
  await using server = await answering();
  await using tool = await openTool({ grpc: { address: server.address }, pool: { idleMs: 10 } });
  await call(tool);
  await closed(server.sockets[0]);
  expect((await call(tool)).result?.value).toMatchObject({ orderId: "A1" });
});

test("what does not speak HTTP/2 is not reached", async () => {
  const http1 = createTcp((socket) => void socket.on("error", () => undefined).end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  const address = await listening(http1);
  await using tool = await openTool({ grpc: { address } });
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
  expect(error?.message).toContain("does not speak HTTP/2");
  http1.close();
});

test("a server that never says a word spends the connect limit", async () => {
  const mute = createTcp((socket) => void socket.on("error", () => undefined));
  const address = await listening(mute);
  await using tool = await openTool({ grpc: { address }, timeouts: { connectMs: 50 } });
  expect((await call(tool)).error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit: "connect" } });
  mute.close();
});

test("a connection that breaks ends its calls, and the next one has a new one", async () => {
  await using server = await startRaw((got) => {
    if (server.calls.length === 1) got.stream.session?.destroy();
    else reply(got, [order()]);
  });
  await using tool = await openTool({ grpc: { address: server.address } });
  expect((await call(tool)).error).toMatchObject({ reason: "UPSTREAM_ANSWER_LOST", effect: "unknown" });
  expect((await call(tool)).result?.value).toMatchObject({ orderId: "A1" });
});

test("`grpc.tls` says who vouches for the server, by which name, and what the gateway shows", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-grpc-"));
  await writeFile(join(folder, "ca.pem"), CERTIFICATE);
  await writeFile(join(folder, "key.pem"), KEY);
  const secure = createSecureServer({
    cert: CERTIFICATE,
    key: KEY,
    ca: CERTIFICATE,
    requestCert: true,
    rejectUnauthorized: false,
  });
  const shown: unknown[] = [];
  secure.on("secureConnection", (socket) => shown.push(socket.authorized));
  await using server = await startRaw((got) => reply(got, [order()]), secure);
  const address = server.address.replace("http:", "https:");
  const tool = (tls: Record<string, string>): ReturnType<typeof openTool> =>
    openTool({ folder, grpc: { address, tls, descriptor: join(FOLDER, "orders.binpb") } });
  await using good = await tool({ ca: "ca.pem" });
  expect((await call(good)).result?.value).toMatchObject({ orderId: "A1" });
  await using known = await tool({ ca: "ca.pem", cert: "ca.pem", key: "key.pem", server_name: "localhost" });
  expect((await call(known)).result?.value).toMatchObject({ orderId: "A1" });
  expect(shown).toEqual([false, true]);
  await using wrong = await tool({ ca: "ca.pem", server_name: "orders.example.test" });
  expect((await call(wrong)).error?.message).toMatch(/TLS certificate or handshake is not accepted/);
  await using missing = await tool({ ca: "gone.pem" });
  expect((await call(missing)).error?.message).toMatch(/the file of `grpc.tls.ca` cannot be read \(ENOENT\)/);
  await using untrusted = await openTool({ grpc: { address } });
  expect((await call(untrusted)).error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
  await rm(folder, { recursive: true });
});

test("a server behind a Unix socket is reached", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-grpc-"));
  await using server = await answering();
  const path = join(folder, "orders.sock");
  const { port } = new URL(server.address);
  const relay = createTcp((socket) => {
    const inner = connect(Number(port), "127.0.0.1");
    for (const each of [socket, inner]) each.on("error", () => undefined);
    socket.pipe(inner).pipe(socket);
  }).listen(path);
  await once(relay, "listening");
  {
    await using tool = await openTool({ grpc: { address: `unix:${path}` } });
    expect((await call(tool)).result?.value).toMatchObject({ orderId: "A1" });
    expect(server.calls[0]?.headers[":authority"]).toBe("localhost");
  }
  relay.close();
  await rm(folder, { recursive: true });
});

test("a name that leads to an address that is not public is not reached, unless `grpc.allow_private` or `grpc.egress` allows it", async () => {
  await using server = await answering();
  const { port } = new URL(server.address);
  const address = `http://orders.example.test:${port}`;
  const lookup: NonNullable<Parameters<typeof openTool>[0]["lookup"]> = (_host, _options, callback) =>
    callback(null, [{ address: "127.0.0.1", family: 4 }]);
  await using shut = await openTool({ lookup, grpc: { address } });
  const { error } = await call(shut);
  expect(error).toMatchObject({
    reason: "UPSTREAM_UNREACHABLE",
    metadata: { code: "PRIVATE_ADDRESS" },
    retryable: false,
  });
  await using allowed = await openTool({ lookup, grpc: { address, allow_private: true } });
  expect((await call(allowed)).result?.value).toMatchObject({ orderId: "A1" });
  await using opened = await openTool({ lookup, grpc: { address, egress: { allow: ["127.0.0.0/8"] } } });
  expect((await call(opened)).result?.value).toMatchObject({ orderId: "A1" });
  await using denied = await openTool({
    lookup,
    grpc: { address, allow_private: true, egress: { deny: ["orders.example.test"] } },
  });
  expect(denied.availability()).toMatchObject({ state: "unavailable", reason: expect.stringContaining("egress.deny") });
});

test("a proxy passes the connection on, also where it is plain", async () => {
  await using server = await answering();
  const { port } = new URL(server.address);
  const asked: string[] = [];
  const proxy = createTcp((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (head) => {
      asked.push(head.toString("latin1").split("\r\n")[0] ?? "");
      const inner = connect(Number(port), "127.0.0.1");
      inner.on("error", () => undefined);
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(inner).pipe(socket);
    });
  });
  const address = await listening(proxy);
  await using tool = await openTool({
    grpc: { address: "http://orders.example.test:50051" },
    proxies: { http_proxy: address },
  });
  expect((await call(tool)).result?.value).toMatchObject({ orderId: "A1" });
  expect(asked).toEqual(["CONNECT orders.example.test:50051 HTTP/1.1"]);
  proxy.close();
});

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Passes connections on to a server, until it swallows all that comes over those there are. */
async function startBlackhole(target: string): Promise<
  AsyncDisposable & {
    readonly address: string;
    connections(): number;
    open(): number;
    swallow(): void;
    cut(): Promise<void>;
  }
> {
  const pairs: { readonly outer: Socket; readonly inner: Socket }[] = [];
  const proxy = createTcp((outer) => {
    const inner = connect(Number(new URL(target).port), "127.0.0.1");
    for (const each of [outer, inner]) each.setNoDelay().on("error", () => undefined);
    outer.pipe(inner).pipe(outer);
    pairs.push({ outer, inner });
  });
  const address = await listening(proxy);
  return {
    address,
    connections: () => pairs.length,
    open: () => pairs.filter(({ outer }) => !outer.readableEnded && !outer.closed).length,
    swallow() {
      for (const { outer, inner } of pairs) {
        outer.unpipe(inner).resume();
        inner.unpipe(outer).resume();
      }
    },
    cut: async () => void (await Promise.all(pairs.map(({ outer }) => closed(outer)))),
    async [Symbol.asyncDispose]() {
      for (const { outer, inner } of pairs) {
        outer.destroy();
        inner.destroy();
      }
      proxy.close();
      await once(proxy, "close");
    },
  };
}
