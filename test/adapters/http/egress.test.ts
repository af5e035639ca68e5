import { expect, test } from "vitest";
import { readEgress } from "../../../src/core/egress.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { startNameServer } from "../shared/name-server.ts";
import { call, openTool, problemsOf, send, startJsonUpstream, startUpstream, type ToolOptions } from "./fixture.ts";

const HOST = "orders.example.test";

test("a name that is bound to another address is refused at the next connection, and the first one is what was looked at [X-D01]", async () => {
  await using upstream = await startJsonUpstream();
  // The first answer is allowed by its network, the second one is what rebinding aims at.
  await using names = await startNameServer(["127.0.0.1"], ["127.0.0.2"], ["169.254.169.254"]);
  const keys = { endpoint: `http://${HOST}:${upstream.port}/`, egress: { allow: ["127.0.0.1"] } };
  await using tool = await openTool({ keys, lookup: names.lookup });
  const first = await call(tool);
  expect(first.result?.upstreamCode).toBe(200);
  expect(upstream.requests[0]?.headers.host).toBe(`${HOST}:${upstream.port}`);
  // A connection that is kept leads where it led; the name is not asked for again.
  expect((await call(tool)).result?.upstreamCode).toBe(200);
  expect(names.asked).toEqual([HOST]);
  for (const socket of upstream.sockets) socket.destroy();
  for (const address of ["127.0.0.2", "169.254.169.254"]) {
    const { error } = await call(tool);
    expect(error?.message).toContain(address);
    expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", retryable: false });
  }
  expect(upstream.requests).toHaveLength(2);
});

test("a redirect is followed over a connection that is looked at again [X-D01]", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    if (target !== "/") return send(response, "text/plain", "there");
    response.writeHead(302, { location: "/there", connection: "close" }).end();
  });
  const redirected = async (...answers: readonly (readonly string[])[]) => {
    await using names = await startNameServer(...answers);
    const endpoint = `http://${HOST}:${upstream.port}/`;
    await using tool = await openTool({
      keys: { endpoint, egress: { allow: ["127.0.0.1/32"] } },
      lookup: names.lookup,
    });
    return await call(tool);
  };
  expect((await redirected(["127.0.0.1"])).result?.upstreamCode).toBe(200);
  expect((await redirected(["127.0.0.1"], ["10.0.0.1"])).error).toMatchObject({ metadata: { code: "EGRESS_DENIED" } });
});

test("`egress` of a declaration and of gateway.yaml decide before anything is sent, for addresses too [S2-56, X-D01]", async () => {
  await using upstream = await startJsonUpstream();
  const endpoint = `http://127.0.0.1:${upstream.port}/`;
  const code = async (options: Pick<ToolOptions, "egress"> & { readonly own?: JsonObject }): Promise<unknown> => {
    const keys = { endpoint, ...(options.own === undefined ? {} : { egress: options.own }) };
    await using tool = await openTool({ keys, ...options });
    const { result, error } = await call(tool);
    const state = tool.availability().state === "ready";
    expect(state).toBe(error === undefined);
    return result?.upstreamCode ?? error?.metadata["code"];
  };
  expect(await code({})).toBe(200);
  expect(await code({ own: { deny: ["127.0.0.0/8"] } })).toBe("EGRESS_DENIED");
  expect(await code({ own: { deny: [`127.0.0.1:${upstream.port + 1}`] } })).toBe(200);
  expect(await code({ own: { allow: [`127.0.0.1:${upstream.port}`] } })).toBe(200);
  expect(await code({ own: { allow: ["example.com"] } })).toBe("EGRESS_DENIED");
  expect(await code({ egress: lists({ deny: ["127.0.0.1"] }) })).toBe("EGRESS_DENIED");
  expect(await code({ egress: lists({ deny: ["127.0.0.1"] }), own: { allow: ["127.0.0.1"] } })).toBe("EGRESS_DENIED");
  expect(await code({ egress: lists({ allow: ["127.0.0.0/8"] }) })).toBe(200);
  expect(upstream.requests).toHaveLength(4);
});

function lists(block: { allow?: readonly string[]; deny?: readonly string[] }) {
  const rules = readEgress(block, () => undefined);
  if (rules === undefined) throw new Error("no rules");
  return rules;
}

test("a tool that no list lets through says so where tools are listed and probed", async () => {
  const keys = { endpoint: `https://${HOST}/`, egress: { allow: ["example.com"] } };
  await using tool = await openTool({ keys });
  const message = `${HOST}, port 443, is not in \`egress.allow\` of the declaration`;
  expect(tool.availability()).toEqual({
    state: "unavailable",
    reason: message,
    mend: "Name the place in that list where it is meant, or correct the host.",
  });
  expect(await tool.probe(new AbortController().signal)).toMatchObject({
    ok: false,
    message: `no connection to https://${HOST}: ${message}`,
  });
});

test("tools of one origin with different lists share no connection", async () => {
  await using upstream = await startJsonUpstream();
  const { createHttpAdapter } = await import("../../../src/adapters/http/index.ts");
  const adapter = createHttpAdapter();
  const endpoint = `http://127.0.0.1:${upstream.port}/`;
  await using open = await openTool({ keys: { endpoint }, adapter });
  await using narrow = await openTool({ keys: { endpoint, egress: { deny: ["127.0.0.0/8"] } }, adapter });
  expect((await call(open)).result?.upstreamCode).toBe(200);
  expect((await call(narrow)).error?.metadata["code"]).toBe("EGRESS_DENIED");
});

test("behind a proxy hosts count, and an allowed network lets no name through", async () => {
  await using proxy = await startUpstream((response) => send(response, "text/plain", "by proxy"));
  const proxies = { HTTP_PROXY: proxy.origin };
  const through = async (egress: JsonObject): Promise<unknown> => {
    await using tool = await openTool({ keys: { endpoint: `http://${HOST}/`, egress: egress }, proxies });
    const { result, error } = await call(tool);
    return result?.upstreamCode ?? error?.metadata["code"];
  };
  expect(await through({ allow: [HOST] })).toBe(200);
  expect(await through({ deny: [HOST] })).toBe("EGRESS_DENIED");
  expect(await through({ allow: ["203.0.113.0/24"] })).toBe("EGRESS_DENIED");
});

test("an entry that is no place is refused with its index and the mend", () => {
  expect(
    problemsOf({ keys: { endpoint: "https://a.example/", egress: { allow: ["a.example", "http://b"] } } }),
  ).toEqual([
    "/egress/allow/1 is no place; write one like `api.example.com`, `*.example.com:443`, `10.0.0.0/8` or `[fd00::/8]:8000-8999`",
  ]);
});

test.for([
  "http://user:secret@example.com/",
  "http://example.com\\@127.0.0.1/",
  "http://example.com\\.evil.test/",
  "http://{host}/",
  "http://[fe80::1%25eth0]/",
  "file:///etc/passwd",
  "gopher://x/",
  "//127.0.0.1/",
])("%s is no endpoint [X-D01]", (endpoint) => {
  expect(problemsOf({ keys: { endpoint }, params: { host: { type: "string" } } })).not.toEqual([]);
});

test.for([
  ["http://2130706433/", "127.0.0.1"],
  ["http://0x7f000001/", "127.0.0.1"],
  ["http://0177.0.0.1/", "127.0.0.1"],
  ["http://127.1/", "127.0.0.1"],
  ["http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"],
  ["http://[64:ff9b::10.0.0.1]/", "64:ff9b::a00:1"],
  ["http://１２７.0.0.1/", "127.0.0.1"],
  ["http://127.0.0.1./", "127.0.0.1"],
  ["http://localhost./", "localhost."],
] as const)("%s is %s to the lists and over the wire, however it is written [X-D01]", async ([endpoint, host]) => {
  expect(new URL(endpoint).hostname.replace(/^\[|\]$/g, "")).toBe(host);
  expect(problemsOf({ keys: { endpoint }, reach: "none" })).toEqual([expect.stringContaining("is no public address")]);
  const deny = ["127.0.0.0/8", "::1", "10.0.0.0/8"];
  await using tool = await openTool({ keys: { endpoint, egress: { deny } } });
  expect((await call(tool)).error?.metadata["code"]).toBe("EGRESS_DENIED");
});
