import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import { createToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import { CLIENTS, collect } from "./clients.ts";
import { completed, waiting } from "./fake-registry.ts";
import { streamRequest } from "./frames.ts";
import { CALL_STREAM, envelope, grpcHeaders, rawSession, rawSocket } from "./raw.ts";
import { KEEPALIVE, PATIENT, serve } from "./serve.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

/** Nothing but age ends a connection. */
const LONG: typeof KEEPALIVE = { ...KEEPALIVE, intervalMs: 1e9, timeoutMs: 1e9 };

/** Stops a door whose clock stands. */
async function stop(door: { stop(): Promise<void> }, clock: FakeClock): Promise<void> {
  const stopping = door.stop().then(() => true);
  while (!(await Promise.race([stopping, Promise.resolve(false)]))) await clock.advance(100);
}

test("connections of one age are told to go at times a tenth apart either way, and only once", async () => {
  const clock = createFakeClock();
  const served = await serve({ clock, keepalive: { ...LONG, maxConnectionAgeMs: 100_000 } });
  const toldAtMs: number[] = [];
  const sessions = Array.from({ length: 20 }, () => {
    const session = rawSession(served.url);
    session.on("goaway", () => toldAtMs.push(clock.monotonicMs()));
    return session;
  });
  await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
  const closed = Promise.all(sessions.map((session) => once(session, "close")));
  await clock.advance(89_000);
  expect(toldAtMs).toEqual([]);
  for (let i = 0; i < 22; i++) {
    await clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await closed;
  expect(new Set(toldAtMs).size).toBeGreaterThan(3);
  await expect.poll(() => clock.pending, PATIENT).toBe(0);
  await stop(served.door, clock);
});

test("a stream on an old connection goes on for the grace, is asked for signs of life meanwhile, and is cut then", async () => {
  const clock = createFakeClock();
  const keepalive = {
    intervalMs: 30_000,
    timeoutMs: 10_000,
    maxConnectionAgeMs: 100_000,
    connectionAgeGraceMs: 200_000,
  };
  const served = await serve({ clock, keepalive });
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait", defaultTimeoutMs: 3_000_000 }, waiting(aborted.resolve));
  using session = rawSession(served.url);
  let asked = 0;
  session.on("remoteSettings", () => void asked++);
  const stream = session.request(grpcHeaders(CALL_STREAM));
  stream.on("error", () => undefined).end(envelope(streamRequest("wait")));
  await once(stream, "response");
  const goaway = once(session, "goaway");
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5_000) {
      await clock.advance(5_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  await pass(110_000);
  await goaway;
  const before = asked;
  await pass(170_000);
  expect(stream.closed).toBe(false);
  expect(asked).toBeGreaterThan(before + 3);
  const closed = once(session, "close");
  await pass(40_000);
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
  await closed;
  await stop(served.door, clock);
});

test("an old HTTP/1 connection closes with its next answer", async () => {
  const clock = createFakeClock();
  const served = await serve({ clock, keepalive: { ...LONG, maxConnectionAgeMs: 100_000 } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const answer = (): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      const request = httpRequest(`${served.url}/healthz`, { agent }, (response) => {
        response.resume().on("end", () => resolve(response.headers.connection));
      });
      request.on("error", reject).end();
    });
  const answers = [await answer()];
  await clock.advance(80_000);
  answers.push(await answer());
  await clock.advance(30_000);
  answers.push(await answer(), await answer());
  expect(answers).toEqual(["keep-alive", "keep-alive", "close", "keep-alive"]);
  agent.destroy();
  await stop(served.door, clock);
});

test("an HTTP/1 call that outlasts age and grace is cut", async () => {
  const clock = createFakeClock();
  const served = await serve({ clock, keepalive: { ...LONG, maxConnectionAgeMs: 1_000, connectionAgeGraceMs: 1_000 } });
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
  using raw = await rawSocket(served.port);
  const body = '{"invocation":{"name":"wait"}}';
  raw.socket.write(
    `POST /toolgate.v1.ToolGatewayService/Call HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await started.promise;
  await clock.advance(1_100);
  expect(raw.socket.closed).toBe(false);
  await clock.advance(1_000);
  await raw.closed;
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
  await stop(served.door, clock);
});

/** Makes calls from several loops at a time until it is done; resolves with how many there were. */
async function load(done: () => boolean, ...work: readonly (() => Promise<unknown>)[]): Promise<number> {
  let calls = 0;
  const loop = async (run: () => Promise<unknown>): Promise<void> => {
    while (!done()) {
      await run();
      calls++;
    }
  };
  await Promise.all(work.map(loop));
  return calls;
}

test.each(["grpc", "connect"] as const)(
  "connections that are rotated under load cost our client no call (%s)",
  async (protocol) => {
    const ports = new Set<number>();
    await using served = await serve({
      keepalive: { ...KEEPALIVE, maxConnectionAgeMs: 50 },
      authenticate: async (_headers, { port }) => {
        ports.add(port);
        return { id: "", roles: [] };
      },
    });
    served.registry.add({ name: "tail" }, async function* () {
      for (let i = 0; i < 5; i++) {
        yield { type: "delta", index: 0, text: `${i}` };
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      yield completed();
    });
    using transport = createNodeTransport({ baseUrl: served.url, protocol });
    const client = createToolgateClient(transport);
    const unary = (): Promise<unknown> => client.call("echo", { a: 1 });
    const stream = async (): Promise<void> => {
      const events = await collect(client.callStream("tail"));
      expect(events.at(-1)?.type).toBe("completed");
    };
    const calls = await load(() => ports.size > 12, unary, unary, unary, unary, stream, stream);
    expect(calls).toBeGreaterThan(12);
    expect(served.registry.leases).toBe(0);
  },
);

test("gateways that are replaced one by one behind a balancer cost our client no call", async () => {
  const first = await serve({ drainMs: 10_000 });
  await using proxy = await startTcpProxy(first.port);
  using transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${proxy.port}` });
  const client = createToolgateClient(transport);
  const unary = (): Promise<unknown> => client.call("echo", { a: 1 });
  let done = false;
  const replaced = (async () => {
    let old = first;
    for (let i = 0; i < 4; i++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      const next = await serve({ drainMs: 10_000 });
      proxy.target = next.port;
      await old.door.stop();
      old = next;
    }
    done = true;
    return old;
  })();
  expect(await load(() => done, unary, unary, unary, unary)).toBeGreaterThan(4);
  await (await replaced).door.stop();
});

test.each(Object.keys(CLIENTS))("a stream of %s outlives the age of its connection", async (name) => {
  await using served = await serve({ keepalive: { ...KEEPALIVE, maxConnectionAgeMs: 50 } });
  served.registry.add({ name: "tail" }, async function* () {
    for (let i = 0; i < 10; i++) {
      yield { type: "delta", index: 0, text: `${i}` };
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    yield completed();
  });
  using client = CLIENTS[name]?.(served.url) ?? expect.unreachable();
  const messages = await collect(client.stream({ invocation: { name: "tail" } }));
  expect(messages.map(({ event }) => event.case).at(-1)).toBe("completed");
  expect(messages).toHaveLength(12);
  expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
});
