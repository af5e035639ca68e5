import { once } from "node:events";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CallStreamRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type Logger, silentLogger } from "../../src/core/logger.ts";
import { authenticateNobody } from "../../src/service/authenticate.ts";
import type { FrontDoorOptions } from "../../src/service/front-door.ts";
import { type CertificateFolder, certificateFolder, trustAuthority } from "./certificate-folder.ts";
import { CLIENTS, collect, failureOf } from "./clients.ts";
import { completed, type Run, textResult, waiting } from "./fake-registry.ts";
import { heldClock, passUntil } from "./held-clock.ts";
import { answerOf, envelope, LIST, rawSession, rawSocket } from "./raw.ts";
import { grpcClients, KEEPALIVE, PATIENT, type Served, serve } from "./serve.ts";
import { rawTls } from "./tls-raw.ts";

const CALL_STREAM = "/toolgate.v1.ToolGatewayService/CallStream";
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const EMPTY_SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
/** Where the server's first frame says its type: SETTINGS. */
const SETTINGS = new RegExp(`^[^]{3}${String.fromCharCode(4)}`);

let certificates: CertificateFolder;
let trust: Disposable;

beforeAll(async () => {
  certificates = await certificateFolder();
  trust = trustAuthority();
});

afterAll(async () => {
  trust[Symbol.dispose]();
  await certificates[Symbol.asyncDispose]();
});

function serveTls(options: Partial<FrontDoorOptions> = {}): Promise<Served> {
  return serve({ tls: certificates.files, ...options });
}

/** That the gateway still serves. */
async function alive({ url }: Served): Promise<void> {
  expect((await grpcClients(url).tools.get({ name: "echo" })).tool?.name).toBe("echo");
}

/** Gives one delta, waits, and gives another and its end. */
function twoParts(until: Promise<void>): Run {
  return async function* () {
    yield { type: "delta", index: 0, text: "first " };
    await until;
    yield { type: "delta", index: 0, text: "second" };
    yield completed({ ...textResult(""), content: [] });
  };
}

/** A logger that keeps the lines an operator would be woken by apart from those for debugging. */
function levels(): Logger & { readonly quiet: string[]; readonly loud: string[] } {
  const quiet: string[] = [];
  const loud: string[] = [];
  return {
    ...silentLogger,
    quiet,
    loud,
    debug: (message) => void quiet.push(message),
    warn: (message) => void loud.push(message),
    error: (message) => void loud.push(message),
  };
}

describe.each(Object.entries(CLIENTS))("%s over TLS", (_name, open) => {
  test("calls, reads a stream and sees an error", async () => {
    await using served = await serveTls();
    served.registry.add({ name: "tail", delivery: "incremental" }, twoParts(Promise.resolve()));
    using client = open(served.url);
    const value = '{"城市":"柏林"}';
    const response = await client.call({ name: "echo", arguments: { case: "argumentsJson", value } });
    expect(response.result?.structuredJson).toBe(value);
    const messages = await collect(client.stream({ invocation: { name: "tail" } }));
    expect(messages.map(({ event }) => event.case)).toEqual(["started", "output", "output", "completed"]);
    expect(await failureOf(client.call({ name: "nothing" }))).toMatchObject({
      code: Code.NotFound,
      reason: "TOOL_NOT_FOUND",
    });
  });

  test("has a stream that runs when the gateway stops drained to its end", async () => {
    await using served = await serveTls({ drainMs: 10_000 });
    const go = Promise.withResolvers<void>();
    served.registry.add({ name: "tail" }, twoParts(go.promise));
    using client = open(served.url);
    const texts: string[] = [];
    let stopped: Promise<void> | undefined;
    for await (const { event } of client.stream({ invocation: { name: "tail" } })) {
      if (event.case !== "output") continue;
      texts.push(String(event.value.delta.value));
      stopped ??= served.door.stop();
      go.resolve();
    }
    expect(texts.join("")).toBe("first second");
    await stopped;
  });
});

test("the caller's connection counts as encrypted over both HTTP versions", async () => {
  const encrypted: boolean[] = [];
  await using served = await serveTls({
    authenticate: async (headers, peer) => {
      encrypted.push(peer.encrypted);
      return authenticateNobody(headers, peer);
    },
  });
  await alive(served);
  await fetch(served.url + LIST, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  expect(encrypted).toEqual([true, true]);
});

test("the probes answer over TLS", async () => {
  await using served = await serveTls();
  for (const path of ["/healthz", "/readyz"]) expect((await fetch(served.url + path)).status).toBe(200);
});

test.each([
  { offered: ["h2", "http/1.1"], agreed: "h2" },
  { offered: ["http/1.1", "h2"], agreed: "h2" },
  { offered: ["http/1.1"], agreed: "http/1.1" },
  { offered: undefined, agreed: false },
])("of the protocols $offered $agreed is spoken", async ({ offered, agreed }) => {
  await using served = await serveTls();
  using raw = await rawTls(served.port, offered === undefined ? {} : { ALPNProtocols: offered });
  expect(raw.socket.alpnProtocol).toBe(agreed);
  raw.socket.write(agreed === "h2" ? PREFACE : "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await raw.received(agreed === "h2" ? SETTINGS : /200 OK[^]*ok/);
});

test("a peer that offers none of our protocols is refused in the handshake", async () => {
  const logger = levels();
  await using served = await serveTls({ logger });
  await expect(rawTls(served.port, { ALPNProtocols: ["spdy/3"] })).rejects.toMatchObject({
    code: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
  });
  await alive(served);
  expect(logger.loud).toEqual([]);
});

test("what is not spoken as agreed is refused", async () => {
  await using served = await serveTls();
  using http1 = await rawTls(served.port, { ALPNProtocols: ["h2"] });
  http1.socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  await http1.closed;
  expect(http1.text()).not.toContain("200 OK");
  using http2 = await rawTls(served.port, { ALPNProtocols: ["http/1.1"] });
  http2.socket.write(PREFACE);
  await http2.closed;
  expect(http2.text()).not.toMatch(SETTINGS);
  await alive(served);
  // Node would keep such a socket for ten seconds, and the stop would wait for it.
  const beforeMs = performance.now();
  await served.door.stop();
  expect(performance.now() - beforeMs).toBeLessThan(8_000);
});

test("an older version of TLS than the oldest allowed is refused", async () => {
  await using served = await serveTls({ tls: { ...certificates.files, minVersion: "TLSv1.3" } });
  await expect(rawTls(served.port, { maxVersion: "TLSv1.2" })).rejects.toMatchObject({
    code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
  });
  using raw = await rawTls(served.port);
  expect(raw.socket.getProtocol()).toBe("TLSv1.3");
  await using standard = await serveTls();
  using older = await rawTls(standard.port, { maxVersion: "TLSv1.2" });
  expect(older.socket.getProtocol()).toBe("TLSv1.2");
});

test("plaintext is told over both HTTP versions that this port speaks TLS", async () => {
  const logger = levels();
  await using served = await serveTls({ logger });
  using http1 = await rawSocket(served.port);
  http1.socket.write(`POST ${LIST} HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n${"x".repeat(3_000_000)}`);
  await http1.closed;
  expect(http1.text()).toMatch(/^HTTP\/1\.1 400 [^]*this port speaks TLS: use https\n$/);
  using session = rawSession(served.url.replace("https:", "http:"));
  const [code, , words] = await once(session, "goaway");
  expect(code).toBe(constants.NGHTTP2_INADEQUATE_SECURITY);
  expect(String(words)).toBe("this port speaks TLS: use https\n");
  await alive(served);
  expect(logger.loud).toEqual([]);
  expect(logger.quiet.filter((message) => message === "plaintext-refused")).toHaveLength(2);
});

test("a peer that does not take the certificate is a debug line and nothing more", async () => {
  const logger = levels();
  await using served = await serveTls({ logger });
  await expect(rawTls(served.port, { ca: [] })).rejects.toThrow("self-signed certificate in certificate chain");
  using garbage = await rawSocket(served.port);
  garbage.socket.write(Buffer.from([0x16, 3, 1, 0, 4, 1, 2, 3, 4]));
  await garbage.closed;
  using torn = await rawSocket(served.port);
  torn.socket.write(Buffer.from([0x16, 3, 1]));
  torn.socket.resetAndDestroy();
  await expect.poll(() => logger.quiet, PATIENT).toContain("tls-handshake-failed");
  await alive(served);
  expect(logger.loud).toEqual([]);
});

/** A limit that nothing else has. */
const SNIFF_MS = 12_345;

/** How far a silent peer comes before it falls silent. */
const SILENCES: Readonly<Record<string, (socket: Socket) => void>> = {
  nothing: () => undefined,
  "the first byte of a handshake": (socket) => void socket.write(Buffer.from([0x16])),
  "a part of a handshake": (socket) => void socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0])),
  "the first byte of a preface": (socket) => void socket.write("P"),
};

test.each(Object.entries(SILENCES))("a socket that is silent after %s is cut", async (_what, begin) => {
  const clock = heldClock(SNIFF_MS);
  await using served = await serveTls({ clock, connection: { sniffMs: SNIFF_MS } });
  using raw = await rawSocket(served.port);
  begin(raw.socket);
  await passUntil(clock, raw.closed);
  await alive(served);
});

test("a handshake of a byte now and then is cut in time", async () => {
  const clock = heldClock(SNIFF_MS);
  await using served = await serveTls({ clock, connection: { sniffMs: SNIFF_MS } });
  using raw = await rawSocket(served.port);
  raw.socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0]));
  const drip = setInterval(() => raw.socket.write(Buffer.from([0])), 5);
  await passUntil(clock, raw.closed).finally(() => clearInterval(drip));
  await alive(served);
});

test.each([{ ALPNProtocols: ["h2"] }, { ALPNProtocols: ["http/1.1"] }, {}])(
  "a peer that is silent after its handshake is cut (%j)",
  async (options) => {
    const clock = heldClock(SNIFF_MS);
    await using served = await serveTls({ clock, connection: { sniffMs: SNIFF_MS } });
    using raw = await rawTls(served.port, options);
    await passUntil(clock, raw.closed);
    await alive(served);
  },
);

test("connections over the limit are closed, those in their handshake count", async () => {
  await using served = await serveTls({ connection: { connections: 2, sniffMs: 600_000 } });
  using shaking = await rawSocket(served.port);
  using open = await rawTls(served.port);
  using third = await rawSocket(served.port);
  await third.closed;
  expect([shaking.socket.closed, open.socket.closed]).toEqual([false, false]);
});

test("headers that come too slowly over TLS are cut with 408", async () => {
  await using served = await serveTls({ connection: { headersMs: 300 } });
  using raw = await rawTls(served.port);
  raw.socket.write(`POST ${LIST} HTTP/1.1\r\nHost: x\r\nX-Slow: `);
  await raw.closed;
  expect(raw.text()).toMatch(/^HTTP\/1\.1 408/);
});

test("header fields over the limit are refused over TLS", async () => {
  await using served = await serveTls();
  using raw = await rawTls(served.port);
  raw.socket.write(`GET /healthz HTTP/1.1\r\nHost: x\r\nX-Big: ${"x".repeat(20_000)}\r\n\r\n`);
  await raw.closed;
  // Node's answer 431 is lost where the bytes it has not read make the system reset the connection.
  expect(raw.text()).toMatch(/^(HTTP\/1\.1 431[^]*)?$/);
  await alive(served);
});

test.each(["a b[", "localhost:99999", "[::", "x%zz"])("the Host %j does no harm over TLS", async (host) => {
  await using served = await serveTls();
  using raw = await rawTls(served.port);
  raw.socket.write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  await raw.closed;
  expect(raw.text()).toMatch(/^HTTP\/1\.1 (200|400)/);
  using session = rawSession(served.url);
  const stream = session.request({ ":path": "/healthz", ":authority": host });
  stream.end();
  const { status, rstCode } = await answerOf(stream);
  expect(status === 200 || rstCode !== 0).toBe(true);
  await alive(served);
});

test("a caller that sends GOAWAY and then more over TLS does no harm", async () => {
  await using served = await serveTls();
  const goaway = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  // :method GET, :scheme http, :path /, by their numbers in HPACK's static table.
  const headers = Buffer.from([0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84]);
  for (let i = 0; i < 20; i++) {
    using raw = await rawTls(served.port, { ALPNProtocols: ["h2"] });
    raw.socket.write(Buffer.concat([Buffer.from(PREFACE), EMPTY_SETTINGS, goaway, headers]));
    await raw.received(SETTINGS);
  }
  await alive(served);
});

/** Calls `wait` over HTTP/2 and is as still as a frozen process from then on: it answers no ping. */
async function frozenCall(port: number): Promise<Awaited<ReturnType<typeof rawTls>>> {
  const raw = await rawTls(port, { ALPNProtocols: ["h2"] });
  const field = (name: string, value: string): Buffer =>
    Buffer.from(`\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`, "latin1");
  const fields = Buffer.concat([
    Buffer.from([0x83, 0x87]),
    field(":path", CALL_STREAM),
    field(":authority", "x"),
    field("content-type", "application/grpc"),
    field("te", "trailers"),
  ]);
  const message = envelope(
    toBinary(CallStreamRequestSchema, create(CallStreamRequestSchema, { invocation: { name: "wait" } })),
  );
  const frame = (type: number, flags: number, payload: Buffer): Buffer =>
    Buffer.concat([Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, 1]), payload]);
  raw.socket.write(Buffer.concat([Buffer.from(PREFACE), EMPTY_SETTINGS, frame(1, 4, fields), frame(0, 1, message)]));
  return raw;
}

test("a frozen client over TLS is noticed by the pings it does not answer [G-D02]", async () => {
  await using served = await serveTls({ keepalive: { ...KEEPALIVE, intervalMs: 100, timeoutMs: 100 } });
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve));
  using raw = await frozenCall(served.port);
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
  await raw.closed;
});

const GONE = {
  "a FIN": (socket: Socket) => void socket.end(),
  "a cut": (socket: Socket) => void socket.destroy(),
} as const;

test.each(Object.entries(GONE))("a client over TLS that leaves with %s ends its call [G-D02]", async (_what, leave) => {
  await using served = await serveTls();
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
  using raw = await frozenCall(served.port);
  await started.promise;
  leave(raw.socket);
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
});

test("at a stop idle peers are told and closed, and those in their handshake are cut", async () => {
  // The time for last words, after which everything would be cut, does not pass.
  await using served = await serveTls({ clock: heldClock(500) });
  using session = rawSession(served.url);
  await once(session, "remoteSettings");
  const goaway = once(session, "goaway");
  using silent = await rawSocket(served.port);
  using shaking = await rawSocket(served.port);
  shaking.socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0]));
  using shaken = await rawTls(served.port);
  // Long enough for the bytes to be there.
  await alive(served);
  await served.door.stop();
  expect((await goaway)[0]).toBe(0);
  await Promise.all([silent.closed, shaking.closed, shaken.closed]);
  await expect(rawSocket(served.port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
