import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import type { Socket } from "node:net";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { CLIENTS, collect, failureOf } from "./clients.ts";
import { completed, createFakeRegistry, deaf, type Run, textResult, waiting } from "./fake-registry.ts";
import { floodedSocket } from "./frames.ts";
import { LIST, rawSession, rawSocket } from "./raw.ts";
import { createDoor, grpcClients, PATIENT, serve } from "./serve.ts";

/** Gives one delta, waits, and gives another and its end. */
function twoParts(until: Promise<void>): Run {
  return async function* () {
    yield { type: "delta", index: 0, text: "first " };
    await until;
    yield { type: "delta", index: 0, text: "second" };
    yield completed({ ...textResult(""), content: [] });
  };
}

test.each(Object.keys(CLIENTS))(
  "a stream of %s that runs when the gateway stops is drained to its end",
  async (name) => {
    await using served = await serve({ drainMs: 10_000 });
    const go = Promise.withResolvers<void>();
    served.registry.add({ name: "tail" }, twoParts(go.promise));
    using client = CLIENTS[name]?.(served.url) ?? expect.unreachable();
    const texts: string[] = [];
    let stopped: Promise<void> | undefined;
    for await (const { event } of client.stream({ invocation: { name: "tail" } })) {
      if (event.case !== "output") continue;
      texts.push(String(event.value.delta.value));
      stopped ??= served.door.stop();
      // Later than an aborted call would be given up.
      setTimeout(go.resolve, 500);
    }
    expect(texts.join("")).toBe("first second");
    await stopped;
  },
);

test("a call that outlasts the drain ends with GATEWAY_STOPPING, and the stop with it", async () => {
  await using served = await serve({ drainMs: 100 });
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
  const failure = failureOf(grpcClients(served.url).tools.call({ invocation: { name: "wait" } }));
  await started.promise;
  await served.door.stop();
  expect(await failure).toMatchObject({ code: Code.Unavailable, reason: "GATEWAY_STOPPING" });
  expect(await aborted.promise).toBeInstanceOf(GatewayError);
  expect(served.registry.leases).toBe(0);
});

test("a call whose tool ignores everything does not hold the stop", async () => {
  await using served = await serve({ drainMs: 50 });
  served.registry.add({ name: "deaf" }, deaf);
  const failure = failureOf(grpcClients(served.url).tools.call({ invocation: { name: "deaf" } }));
  await expect.poll(() => served.registry.leases, PATIENT).toBe(1);
  await served.door.stop();
  expect((await failure).code).toBe(Code.Unavailable);
});

test("a watch ends at once, so that its caller goes on elsewhere, while calls are still drained", async () => {
  await using served = await serve({ drainMs: 10_000 });
  const go = Promise.withResolvers<void>();
  served.registry.add({ name: "tail" }, twoParts(go.promise));
  const { tools } = grpcClients(served.url);
  const call = tools.call({ invocation: { name: "tail" } });
  const watch = failureOf(collect(tools.watch({})));
  await expect.poll(() => served.registry.watches, PATIENT).toBe(1);
  await expect.poll(() => served.registry.leases, PATIENT).toBe(1);
  const stopped = served.door.stop();
  expect(await watch).toMatchObject({ code: Code.Unavailable, reason: "GATEWAY_STOPPING" });
  expect(served.registry.watches).toBe(0);
  go.resolve();
  expect((await call).result?.content).toHaveLength(1);
  await stopped;
});

test("idle connections of both HTTP versions are told and closed, and nobody gets in", async () => {
  await using served = await serve();
  using session = rawSession(served.url);
  await once(session, "remoteSettings");
  const goaway = once(session, "goaway");
  const agent = new Agent({ keepAlive: true });
  const socket = await new Promise<Socket>((resolve, reject) => {
    const request = httpRequest(`${served.url}/healthz`, { agent }, (response) => {
      const { socket: used } = response;
      response.resume().on("end", () => resolve(used));
    });
    request.on("error", reject).end();
  });
  const closed = once(socket, "close");
  using silent = await rawSocket(served.port);
  await served.door.stop();
  expect((await goaway)[0]).toBe(0);
  await closed;
  await silent.closed;
  agent.destroy();
  await expect(rawSocket(served.port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("an HTTP/1 connection that is in use when the gateway stops closes with its answer", async () => {
  await using served = await serve({ drainMs: 10_000 });
  const go = Promise.withResolvers<void>();
  served.registry.add({ name: "tail" }, twoParts(go.promise));
  using raw = await rawSocket(served.port);
  const body = '{"invocation":{"name":"tail"}}';
  const path = LIST.replace("List", "Call");
  raw.socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await expect.poll(() => served.registry.leases, PATIENT).toBe(1);
  const stopped = served.door.stop();
  go.resolve();
  await raw.closed;
  expect(raw.text()).toMatch(/^HTTP\/1\.1 200[^]*first second/);
  await stopped;
});

test.each([0, 50])(
  "a peer that reads nothing does not hold the stop, and its call is freed (drain of %i ms)",
  async (drainMs) => {
    await using served = await serve({ drainMs, connection: { resetGraceMs: 50 } });
    using raw = await floodedSocket(served);
    await served.door.stop();
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
    raw.socket.resume();
    await raw.closed;
  },
);

test("stopping twice is stopping once", async () => {
  await using served = await serve();
  const first = served.door.stop();
  expect(served.door.stop()).toBe(first);
  await first;
});

test("a door that never opened can be stopped", async () => {
  await using door = createDoor(createFakeRegistry(), {});
  await door.stop();
});

test("a port that is taken is named with the mend", async () => {
  await using served = await serve();
  await expect(serve({ listen: { host: served.host, port: served.port } })).rejects.toMatchObject({
    message: `cannot listen on ${served.host}:${served.port}: another process listens there; stop it or set \`listen\` in gateway.yaml`,
  });
});
