import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { waiting } from "./fake-registry.ts";
import { floodedSocket, grpcRequest, preface, streamRequest } from "./frames.ts";
import { CALL, CALL_STREAM, envelope, grpcHeaders, rawSession, rawSocket } from "./raw.ts";
import { KEEPALIVE, PATIENT, serve } from "./serve.ts";

/** A client that asks for a stream and then is as still as a frozen process: it answers no ping. */
function frozenCall(name: string): Buffer {
  return Buffer.concat([preface(), grpcRequest(CALL_STREAM, 1, streamRequest(name))]);
}

test("a frozen client is noticed by the pings it does not answer, and its call ends [G-D02]", async () => {
  await using served = await serve({ keepalive: { ...KEEPALIVE, intervalMs: 100, timeoutMs: 100 } });
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
  using raw = await rawSocket(served.port);
  raw.socket.write(frozenCall("wait"));
  await started.promise;
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
  await raw.closed;
});

test("a client that reads nothing at all is cut with its socket, although the gateway has more for it [G-D02]", async () => {
  await using served = await serve({ keepalive: { ...KEEPALIVE, intervalMs: 100, timeoutMs: 200 } });
  using raw = await floodedSocket(served);
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  // What the system had taken can be read still; then the socket is closed.
  raw.socket.resume();
  await raw.closed;
});

test("a client that answers its pings is left alone", async () => {
  await using served = await serve({ keepalive: { ...KEEPALIVE, intervalMs: 20, timeoutMs: 60_000 } });
  const started = Promise.withResolvers<void>();
  served.registry.add(
    { name: "wait" },
    waiting(() => undefined, started.resolve),
  );
  using session = rawSession(served.url);
  let pings = 0;
  const enough = new Promise<void>((resolve) => session.on("ping", () => (++pings === 5 ? resolve() : undefined)));
  const stream = session.request(grpcHeaders(CALL_STREAM));
  stream.on("error", () => undefined);
  stream.end(envelope(streamRequest("wait")));
  await started.promise;
  await enough;
  expect(stream.closed).toBe(false);
  expect(served.registry.leases).toBe(1);
});

const GONE = {
  "a FIN": (socket: Socket) => void socket.end(),
  "a RST": (socket: Socket) => void socket.resetAndDestroy(),
} as const;

test.each(Object.entries(GONE))(
  "a client that leaves with %s ends its call over HTTP/2 [G-D02]",
  async (_what, leave) => {
    await using served = await serve();
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<unknown>();
    served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
    using raw = await rawSocket(served.port);
    raw.socket.write(frozenCall("wait"));
    await started.promise;
    leave(raw.socket);
    expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  },
);

test.each(Object.entries(GONE))("a client that leaves with %s ends its call over HTTP/1", async (_what, leave) => {
  await using served = await serve();
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
  using raw = await rawSocket(served.port);
  const body = '{"invocation":{"name":"wait"}}';
  raw.socket.write(
    `POST /toolgate.v1.ToolGatewayService/Call HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await started.promise;
  leave(raw.socket);
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
});

/** Whether the system has a keepalive timer for the server's side of a connection. Source: Linux, proc_net_tcp.txt. */
async function hasKeepaliveTimer(serverPort: number, clientPort: number): Promise<boolean> {
  const end = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = (await readFile("/proc/net/tcp", "utf8")).split("\n").map((line) => line.trim().split(/\s+/));
  const found = lines.find(
    ([, local, remote]) => local?.endsWith(end(serverPort)) && remote?.endsWith(end(clientPort)),
  );
  return found?.[5]?.startsWith("02:") === true;
}

test.skipIf(process.platform !== "linux")(
  "the system probes an HTTP/1 connection, whose peer cannot be pinged [G-D02]",
  async () => {
    await using served = await serve();
    const started = Promise.withResolvers<void>();
    served.registry.add(
      { name: "wait" },
      waiting(() => undefined, started.resolve),
    );
    using raw = await rawSocket(served.port);
    const body = '{"invocation":{"name":"wait"}}';
    raw.socket.write(
      `POST ${CALL} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await started.promise;
    await expect.poll(() => hasKeepaliveTimer(served.port, raw.socket.localPort ?? 0), PATIENT).toBe(true);
  },
);
