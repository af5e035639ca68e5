import { once } from "node:events";
import type { AddressInfo, LookupFunction } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { inspect } from "node:util";
import { afterEach, expect, test } from "vitest";
import { createHttpAdapter } from "../../../src/adapters/http/index.ts";
import { type ProxyEnvironment, routeTo } from "../../../src/adapters/shared/network/proxy.ts";
import type { Upstream } from "../../../src/core/adapter.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { call, closed, configure, invoke, openTool, startJsonUpstream, startRawUpstream } from "./fixture.ts";
import { startProxy } from "./test-proxy.ts";
import { CERTIFICATE, createNamedTlsServer, NAMED_CERTIFICATE } from "./tls-fixture.ts";

const trusted = getCACertificates("default");
const { signal } = new AbortController();
const DEAD = "http://127.0.0.1:1";

afterEach(() => setDefaultCACertificates(trusted));

test("HTTP_PROXY is used for http, its name is left to the proxy, and its connection is kept [U-D15]", async () => {
  await using upstream = await startJsonUpstream({ code: 0 });
  await using proxy = await startProxy(upstream.port);
  const keys = { endpoint: "http://orders.example.test/o/{id}", method: "POST" };
  const proxies = { HTTP_PROXY: `http://me:p%40ss-word@127.0.0.1:${proxy.port}`, HTTPS_PROXY: DEAD };
  await using tool = await openTool({ keys, params: { id: {}, note: {} }, proxies });
  for (let i = 0; i < 2; i++) {
    const outcome = await call(tool, { id: "a/b", note: "订单" }, { explain: true });
    expect(outcome.result?.value).toEqual({ code: 0 });
    expect(outcome.exchange?.url).toBe("http://orders.example.test/o/a%2Fb");
    expect(inspect(outcome, { depth: 9 })).not.toMatch(/p@ss-word|p%40ss|bWU6cEBzcy13b3Jk/);
  }
  const credentials = `Basic ${Buffer.from("me:p@ss-word").toString("base64")}`;
  const line = `POST http://orders.example.test/o/a%2Fb ${credentials}`;
  expect(proxy.seen).toEqual([line, line]);
  expect(upstream.requests[0]).toMatchObject({ body: '{"note":"订单"}', headers: { host: "orders.example.test" } });
  expect(proxy.sockets).toHaveLength(1);
  expect((await tool.probe(signal)).message).toMatch(
    /^proxy http:\/\/127\.0\.0\.1:\d+ \(HTTP_PROXY\) accepts connections \(\d+ ms\); whether it reaches http:\/\/orders\.example\.test shows a call$/,
  );
});

test("HTTPS_PROXY is used for https by a tunnel that the proxy cannot look into [U-D15]", async () => {
  setDefaultCACertificates([NAMED_CERTIFICATE]);
  const authorizations: (string | undefined)[] = [];
  const server = createNamedTlsServer(({ headers }, response) => {
    authorizations.push(headers["proxy-authorization"]);
    response.setHeader("content-type", "application/json").end('{"code":0}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using proxy = await startProxy((server.address() as AddressInfo).port);
  const proxies = { https_proxy: `me:pw@127.0.0.1:${proxy.port}` };
  await using tool = await openTool({ keys: { endpoint: "https://orders.example.test/o" }, proxies });
  for (let i = 0; i < 2; i++) expect((await call(tool)).result?.value).toEqual({ code: 0 });
  expect(proxy.seen).toEqual([`CONNECT orders.example.test:443 Basic ${Buffer.from("me:pw").toString("base64")}`]);
  expect(authorizations).toEqual([undefined, undefined]);
  expect((await tool.probe(signal)).message).toMatch(
    /^https:\/\/orders\.example\.test accepts connections through proxy http:\/\/127\.0\.0\.1:\d+ \(https_proxy\) \(\d+ ms\)$/,
  );
  await using wrong = await openTool({ keys: { endpoint: "https://other.example.test/o" }, proxies });
  expect((await call(wrong)).error?.message).toContain("(ERR_TLS_CERT_ALTNAME_INVALID)");
  server.closeAllConnections();
  server.close();
});

test("a proxy that is spoken to over TLS makes a tunnel too, and a call in it can be ended", async () => {
  setDefaultCACertificates([CERTIFICATE, NAMED_CERTIFICATE]);
  const waiting: (() => void)[] = [];
  const server = createNamedTlsServer(({ url }, response) => {
    if (url === "/?mode=slow") waiting.shift()?.();
    else response.setHeader("content-type", "application/json").end('{"code":0}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using proxy = await startProxy((server.address() as AddressInfo).port, true);
  const keys = { endpoint: "https://orders.example.test/" };
  const proxies = { HTTPS_PROXY: `https://127.0.0.1:${proxy.port}` };
  await using tool = await openTool({ keys, proxies, inputSchema: { type: "object" } });
  expect((await call(tool)).result?.value).toEqual({ code: 0 });
  expect(await tool.probe(signal)).toMatchObject({ ok: true });
  const controller = new AbortController();
  const arrived = new Promise<void>((resolve) => waiting.push(resolve));
  const ended = call(tool, { mode: "slow" }, { signal: controller.signal });
  await arrived;
  controller.abort(new GatewayError("CALL_CANCELLED", "stopped"));
  expect((await ended).error?.reason).toBe("CALL_CANCELLED");
  for (const socket of proxy.sockets) await closed(socket);
  expect((await call(tool)).result?.value).toEqual({ code: 0 });
  server.closeAllConnections();
  server.close();
});

test.for([
  ["HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "answered HTTP 407 to CONNECT", "Put a name and password"],
  ["HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "answered HTTP 502 to CONNECT", "Let the proxy pass"],
  ["SSH-2.0-OpenSSH\r\n\r\n", "sent what is not HTTP/1.1 to CONNECT", "Let the proxy pass"],
  [`HTTP/1.1 200 OK\r\nx: ${"x".repeat(20_000)}`, "sent what is not HTTP/1.1 to CONNECT", "Let the proxy pass"],
  ["HTTP/1.1 200 OK\r\n\r\nhello", "sent more than its answer to CONNECT", "Let the proxy pass"],
  ["", "closed the connection to CONNECT", "Let the proxy pass"],
] as const)("a proxy that says %j makes no tunnel", async ([answer, why, mend]) => {
  await using proxy = await startRawUpstream((socket) => socket.end(answer));
  const options = {
    keys: { endpoint: "https://orders.example.test/o", method: "POST" },
    proxies: { HTTPS_PROXY: `http://me:pass-word@127.0.0.1:${proxy.port}` },
  };
  await using tool = await openTool(options);
  const problem = `no connection to https://orders.example.test: proxy ${proxy.origin} (HTTPS_PROXY) ${why}`;
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", message: `order_status: ${problem}` });
  expect(inspect(error, { depth: 9 })).not.toContain("pass-word");
  expect(await tool.probe(signal)).toEqual({ ok: false, message: problem, mend: expect.stringContaining(mend) });
  for (const socket of proxy.sockets) await closed(socket);
});

test.for([
  ["the proxy answers", ""],
  ["the upstream answers TLS", "HTTP/1.1 200 OK\r\n\r\n"],
] as const)("what ends before %s closes its connection", async ([, answer]) => {
  const asked: (() => void)[] = [];
  // The second piece is the upstream's part of the tunnel.
  await using proxy = await startRawUpstream((socket, text) => {
    if (answer === "" || !text.startsWith("CONNECT")) asked.shift()?.();
    else socket.write(answer);
  });
  const next = (): Promise<void> => new Promise((resolve) => asked.push(resolve));
  const proxies = { HTTPS_PROXY: proxy.origin };
  const tool = await openTool({ keys: { endpoint: "https://orders.example.test/o" }, proxies });
  const reason = new GatewayError("CALL_CANCELLED", "stopped");
  for (const start of [(end: AbortSignal) => firstEvent(tool, end), (end: AbortSignal) => tool.probe(end)]) {
    const controller = new AbortController();
    const arrived = next();
    const ended = start(controller.signal);
    await arrived;
    controller.abort(reason);
    await expect(ended).rejects.toBe(reason);
    await closed(proxy.sockets.at(-1));
  }
  const arrived = next();
  const outcome = call(tool);
  await arrived;
  await tool[Symbol.asyncDispose]();
  expect((await outcome).error?.reason).toBe("GATEWAY_STOPPING");
  await closed(proxy.sockets.at(-1));
});

/** The first event of a call. */
function firstEvent(tool: Upstream, end: AbortSignal): Promise<unknown> {
  return invoke(tool, {}, { signal: end })[Symbol.asyncIterator]().next();
}

test("an answer that breaks off in a tunnel is lost, not short", async () => {
  setDefaultCACertificates([NAMED_CERTIFICATE]);
  const server = createNamedTlsServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/plain" }).write("half", () => response.socket?.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using proxy = await startProxy((server.address() as AddressInfo).port);
  const proxies = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
  const keys = { endpoint: "https://orders.example.test/o", method: "POST" };
  await using tool = await openTool({ keys, proxies });
  expect((await call(tool)).error?.reason).toBe("UPSTREAM_ANSWER_LOST");
  server.close();
});

test("a proxy that is not there, or is none, is named without its credentials", async () => {
  const endpoint = "http://orders.example.test/o";
  await using gone = await openTool({ keys: { endpoint }, proxies: { HTTP_PROXY: "http://me:pass-word@127.0.0.1:1" } });
  expect((await call(gone)).error?.message).toBe(
    "order_status: no connection to http://orders.example.test: proxy http://127.0.0.1:1 (HTTP_PROXY): tried 127.0.0.1:1 ECONNREFUSED",
  );
  for (const value of ["socks5://me:pass-word@127.0.0.1:1", "http://me:pass-word@[", "http://me:%ff@127.0.0.1:1"]) {
    await using tool = await openTool({ keys: { endpoint }, proxies: { HTTP_PROXY: value } });
    const problem = "no connection to http://orders.example.test: HTTP_PROXY holds no http or https URL of a proxy";
    expect((await call(tool)).error?.message).toBe(`order_status: ${problem}`);
    expect(await tool.probe(signal)).toMatchObject({ ok: false, message: problem });
  }
});

test("a proxy that refuses the gateway says so", async () => {
  await using proxy = await startRawUpstream((socket) => socket.end("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"));
  const proxies = { HTTP_PROXY: proxy.origin };
  await using tool = await openTool({ keys: { endpoint: "http://orders.example.test/o" }, proxies });
  expect((await call(tool)).result?.failure?.message).toBe(
    "order_status: the proxy refused the gateway's credential (HTTP 407)",
  );
});

test("loopback is never proxied [U-D15]", async () => {
  await using upstream = await startJsonUpstream();
  for (const host of ["127.0.0.1", "localhost", "api.localhost"]) {
    const keys = { endpoint: `http://${host}:${upstream.port}/` };
    await using tool = await openTool({ keys, proxies: { HTTP_PROXY: DEAD } });
    expect((await call(tool)).result?.upstreamCode).toBe(200);
  }
  expect(routeTo("http://[::1]:80", { HTTP_PROXY: DEAD }).kind).toBe("direct");
  expect(routeTo("http://127.9.9.9", { HTTP_PROXY: DEAD }).kind).toBe("direct");
});

test.for([
  ["http://api.example.test", "direct"],
  ["http://example.test", "direct"],
  ["http://myexample.test", "proxied"],
  ["http://x.corp.test", "direct"],
  ["http://corp.test", "direct"],
  ["http://10.1.2.3", "direct"],
  ["http://11.1.2.3", "proxied"],
  ["http://192.0.2.7", "direct"],
  ["http://[2001:db8::7]", "direct"],
  ["http://[2001:db8::8]", "proxied"],
  ["http://[2001:db9::1]:8080", "direct"],
  ["http://[2001:db9::1]:8081", "proxied"],
  ["http://only.port.test:8080", "direct"],
  ["http://only.port.test", "proxied"],
  ["http://a.star.test", "direct"],
  ["http://10.bad.test", "proxied"],
] as const)("NO_PROXY sends %s %s [U-D14]", ([origin, kind]) => {
  const NO_PROXY =
    "::1,Example.test, .corp.test 10.0.0.0/8,192.0.2.7,2001:db8::7,[2001:db9::1]:8080,only.port.test:8080,*.star.test,9.9.9.9/99";
  expect(routeTo(origin, { HTTP_PROXY: DEAD, NO_PROXY }).kind).toBe(kind);
  expect(routeTo(origin, { HTTP_PROXY: DEAD, NO_PROXY: "*" }).kind).toBe("direct");
});

test("names in small letters count first, empty ones not at all, and no others", () => {
  const variable = (environment: ProxyEnvironment): string => {
    const route = routeTo("http://orders.example.test", environment);
    return route.kind === "proxied" ? `${route.proxy.variable} ${route.proxy.origin}` : route.kind;
  };
  expect(variable({ http_proxy: "http://a:1", HTTP_PROXY: "http://b:2" })).toBe("http_proxy http://a:1");
  expect(variable({ http_proxy: " ", HTTP_PROXY: "b:2" })).toBe("HTTP_PROXY http://b:2");
  expect(variable({ HTTPS_PROXY: "http://b:2" })).toBe("direct");
  expect(variable({})).toBe("direct");
});

test("the explanation shows the proxy of a tool without its credentials [U-D14]", () => {
  const proxyOf = (environment: ProxyEnvironment, endpoint: string): string | undefined => {
    const configured = configure({ keys: { endpoint } });
    if (!configured.ok) throw new Error("refused");
    const settings = createHttpAdapter({ environment }).explain(configured.config as never);
    return settings.find(({ key }) => key === "proxy")?.value;
  };
  const environment = { HTTP_PROXY: "http://me:pass-word@proxy.test:3128", HTTPS_PROXY: "ftp://me:pass-word@x" };
  expect(proxyOf(environment, "http://orders.example.test/")).toBe("http://proxy.test:3128 (HTTP_PROXY)");
  expect(proxyOf(environment, "https://orders.example.test/")).toBe("HTTPS_PROXY holds no http or https URL");
  expect(proxyOf(environment, "http://127.0.0.1/")).toBe("none: loopback is never proxied");
  const exceptions = { ...environment, no_proxy: "example.test" };
  expect(proxyOf(exceptions, "http://orders.example.test/")).toBe("none: no_proxy names the host");
  expect(proxyOf({}, "http://127.0.0.1/")).toBeUndefined();
});

test("a probe says which way it went, and why not through the proxy [U-D14]", async () => {
  await using upstream = await startJsonUpstream();
  const messageOf = async (endpoint: string, variables: Record<string, string>): Promise<string> => {
    const lookup: LookupFunction = (_host, _options, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]);
    await using tool = await openTool({ keys: { endpoint, allow_private: true }, proxies: variables, lookup });
    return (await tool.probe(signal)).message;
  };
  const proxies = { HTTP_PROXY: DEAD };
  expect(await messageOf(upstream.origin, proxies)).toContain("connections directly (loopback is never proxied)");
  const named = `http://orders.example.test:${upstream.port}`;
  expect(await messageOf(named, { ...proxies, NO_PROXY: "example.test" })).toContain("NO_PROXY names the host");
});
