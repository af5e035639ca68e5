import { inspect } from "node:util";
import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { startProxy } from "../http/test-proxy.ts";
import { startFakeHttp } from "./fake-http.ts";
import { call, openServer, textOf } from "./fixture.ts";

test("a remote server's tools are listed and called, with its headers filled in and not shown [S2-100] [S2-101]", async () => {
  await using fake = await startFakeHttp({ strict: true });
  const mcp = { url: fake.url, headers: { Authorization: "Bearer ${GITHUB_MCP_TOKEN}" } };
  await using server = await openServer({ mcp, environment: { GITHUB_MCP_TOKEN: "ghp-0123456789" } });
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
  for (const { headers } of fake.requests) expect(headers.authorization).toBe("Bearer ghp-0123456789");
  const outcome = await call(server, "quick", {}, { explain: true });
  expect(JSON.stringify(outcome.events)).not.toContain("ghp-");
});

test("answers come as events or as JSON, with what stands before them [M-D19]", async () => {
  for (const answers of ["sse", "json"] as const) {
    await using fake = await startFakeHttp({ answers });
    await using server = await openServer({ mcp: { url: fake.url } });
    await server.ready();
    const outcome = await call(server, "burst");
    expect(textOf(outcome)).toBe("done");
    expect(outcome.events.filter(({ type }) => type === "progress")).toHaveLength(answers === "sse" ? 5 : 0);
    const { result } = await call(server, "digits", { id: "7" });
    expect(result?.value).toMatchObject({ id: 9_007_199_254_740_993n });
  }
});

test.for([
  { status: 404, body: "Session not found" },
  { status: 404, body: '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}' },
  { status: 404, body: '{"jsonrpc":"2.0","error":{"code":-32003,"message":"session expired"},"id":null}' },
  {
    status: 400,
    body: '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID"},"id":null}',
  },
])("a session that the server forgot is begun anew, and the call is sent once more ($status) [M-D03]", async (lost) => {
  const stopped = new AbortController();
  await using fake = await startFakeHttp({ lost });
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
  await using server = await openServer({ mcp: { url: fake.url, protocol: "legacy" }, clock });
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
  const running = call(server, "silent", {}, { signal: stopped.signal });
  await fake.until(() => fake.requests.some(({ message }) => message.params?.["name"] === "silent"));
  aheadMs = 2_000;
  fake.forget();
  const many = Array.from({ length: 8 }, async () => expect(textOf(await call(server, "quick"))).toBe("ok"));
  await Promise.all(many);
  expect(textOf(await call(server, "quick"))).toBe("ok");
  // One that was taken before goes on.
  expect(fake.cut).toEqual([]);
  stopped.abort(new GatewayError("CALL_CANCELLED", "stopped by the test"));
  expect((await running).error?.reason).toBe("CALL_CANCELLED");
  const inits = fake.requests.filter(({ message }) => message.method === "initialize");
  expect(inits.map(({ headers }) => headers["mcp-session-id"])).toEqual([undefined, undefined]);
});

test("a server that forgets its first session at once is not taken for one of the older transport [M-D03]", async () => {
  await using fake = await startFakeHttp({ forgetful: true });
  await using server = await openServer({ mcp: { url: fake.url, restart: { first: "10ms" } } });
  await server.until(() => server.upstream.availability().reason.startsWith("failed"));
  expect(server.upstream.availability().reason).toBe("failed: the server answered HTTP 404");
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test.for(["405", "404", "406", "400", "html", "json", "close"] as const)(
  "a server whose GET comes to %s works, and is not asked again and again [M-D22] [R-D01]",
  async (get) => {
    await using fake = await startFakeHttp({ get });
    await using server = await openServer({ mcp: { url: fake.url, protocol: "legacy" } });
    await server.ready();
    await fake.until(() => fake.requests.some(({ method }) => method === "GET"));
    expect(textOf(await call(server, "quick"))).toBe("ok");
    expect(server.upstream.availability().state).toBe("ready");
    expect(fake.requests.filter(({ method }) => method === "GET").length).toBeLessThanOrEqual(2);
  },
);

test("a change told over the listening stream is taken up [M-D04]", async () => {
  await using fake = await startFakeHttp();
  await using server = await openServer({ mcp: { url: fake.url, protocol: "legacy" } });
  await server.ready();
  await fake.until(() => fake.requests.some(({ method }) => method === "GET"));
  await call(server, "change");
  await server.until(() => server.names().includes("added"));
});

test("a server of HTTP with SSE is found out and spoken to", async () => {
  await using fake = await startFakeHttp({ older: true });
  await using server = await openServer({ mcp: { url: fake.url } });
  await server.ready();
  const outcome = await call(server, "burst");
  expect(textOf(outcome)).toBe("done");
  expect(outcome.events.filter(({ type }) => type === "progress")).toHaveLength(5);
});

test("a server that breaks at the question for its era is spoken to as before", async () => {
  await using fake = await startFakeHttp({ discoverStatus: 500 });
  await using server = await openServer({ mcp: { url: fake.url } });
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("a server of the stateless era is spoken to in it, and has no session", async () => {
  await using fake = await startFakeHttp({ discover: "modern" });
  await using server = await openServer({ mcp: { url: fake.url } });
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
  const last = fake.requests.at(-1);
  expect(last?.headers).toMatchObject({
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "quick",
  });
  expect(fake.requests.some(({ message }) => message.method === "initialize")).toBe(false);
});

test("parameters that a schema wants as headers go along as such, and a wrong wish costs one tool", async () => {
  const region = { type: "string", "x-mcp-header": "Region" };
  const tools = [
    { name: "placed", inputSchema: { type: "object", properties: { region } } },
    { name: "wrong", inputSchema: { type: "object", properties: { list: { type: "array", "x-mcp-header": "List" } } } },
  ];
  await using fake = await startFakeHttp({ discover: "modern", tools });
  await using server = await openServer({ mcp: { url: fake.url } });
  await server.ready();
  expect(server.names()).toEqual(["placed"]);
  expect(server.upstream.offer?.()?.notes).toEqual([
    { tool: "wrong", message: expect.stringContaining("left out: `x-mcp-header` of `list`") as unknown },
  ]);
  await call(server, "placed", { region: "北京" });
  expect(fake.requests.at(-1)?.headers["mcp-param-region"]).toBe("=?base64?5YyX5Lqs?=");
});

test("a revision that the server names as it refuses another one is spoken [M-D20]", async () => {
  await using fake = await startFakeHttp({ versions: ["2025-06-18", "2025-03-26"], strict: true });
  await using server = await openServer({ mcp: { url: fake.url, protocol: "legacy" } });
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(fake.requests.at(-1)?.headers["mcp-protocol-version"]).toBe("2025-06-18");
});

test.for(["legacy", "2026-07-28"] as const)(
  "a cancel closes the request of a call (%s) [M-D10] [R-D08]",
  async (protocol) => {
    await using fake = await startFakeHttp({ discover: "modern" });
    await using server = await openServer({ mcp: { url: fake.url, protocol } });
    await server.ready();
    const controller = new AbortController();
    const ended = call(server, "silent", {}, { signal: controller.signal });
    await fake.until(() => fake.requests.some(({ message }) => message.params?.["name"] === "silent"));
    controller.abort(new GatewayError("CALL_CANCELLED", "stopped by the test"));
    expect((await ended).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "unknown" });
    await fake.until(() => fake.cut.some(({ params }) => params?.["name"] === "silent"));
    const cancels = fake.requests.filter(({ message }) => message.method === "notifications/cancelled");
    expect(cancels).toHaveLength(protocol === "legacy" ? 1 : 0);
  },
);

test("a connection that breaks in a call leaves its outcome unknown, and the server is reached again [U-D12] [R-D05]", async () => {
  await using fake = await startFakeHttp();
  await using server = await openServer({ mcp: { url: fake.url, restart: { first: "50ms" } } });
  await server.ready();
  const ended = call(server, "silent");
  await fake.until(() => fake.requests.some(({ message }) => message.params?.["name"] === "silent"));
  fake.cutAll();
  expect((await ended).error).toMatchObject({ reason: "UPSTREAM_ANSWER_LOST", effect: "unknown" });
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("a server that is not there is named with its address, and found once it is there", async () => {
  const fake = await startFakeHttp();
  await fake[Symbol.asyncDispose]();
  await using server = await openServer({ mcp: { url: fake.url } });
  await server.until(() => server.upstream.availability().reason.startsWith("failed"));
  expect(server.upstream.availability().reason).toMatch(/^failed: no connection: tried 127\.0\.0\.1:\d+ ECONNREFUSED/);
  const { error } = await call(server, "quick");
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
});

test("a credential that the server refuses is said so, and one that was changed is used", async () => {
  let wanted = "Bearer first-0123";
  await using fake = await startFakeHttp({ authorization: () => wanted });
  const environment: Record<string, string | undefined> = { TOKEN: "first-0123" };
  const mcp = { url: fake.url, auth: { bearer: { secret_ref: "TOKEN" } } };
  await using server = await openServer({ mcp, environment });
  await server.ready();
  wanted = "Bearer second-0123";
  const refused = await call(server, "quick");
  expect(refused.result?.failure).toMatchObject({ reason: "UPSTREAM_UNAUTHORIZED", upstreamCode: 401 });
  environment["TOKEN"] = "second-0123";
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("a remote server is reached by the proxy of the environment, loopback never is, and its credentials are not shown [U-D15]", async () => {
  await using fake = await startFakeHttp({ answers: "json" });
  await using proxy = await startProxy(Number(new URL(fake.url).port));
  const environment = { HTTP_PROXY: `http://me:p%40ss-word@127.0.0.1:${proxy.port}` };
  await using server = await openServer({
    mcp: { url: "http://mcp.example.test/mcp", protocol: "legacy" },
    environment,
  });
  await server.ready();
  const outcome = await call(server, "quick", {}, { explain: true });
  expect(textOf(outcome)).toBe("ok");
  const credentials = `Basic ${Buffer.from("me:p@ss-word").toString("base64")}`;
  expect(new Set(proxy.seen)).toEqual(new Set([`POST http://mcp.example.test/mcp ${credentials}`, expect.anything()]));
  const report = await server.upstream.probe(new AbortController().signal);
  expect(inspect([outcome, report], { depth: 9 })).not.toMatch(/p@ss-word|p%40ss|bWU6cEBzcy13b3Jk/);

  const dead = { HTTP_PROXY: "http://me:p%40ss-word@127.0.0.1:1" };
  await using direct = await openServer({ mcp: { url: fake.url }, environment: dead });
  await direct.ready();
  await using lost = await openServer({ mcp: { url: "http://mcp.example.test/mcp" }, environment: dead });
  await lost.until(() => lost.upstream.availability().reason.startsWith("failed"));
  const { reason } = lost.upstream.availability();
  expect(reason).toContain("proxy http://127.0.0.1:1");
  expect(reason).not.toMatch(/p@ss-word|p%40ss/);
});
