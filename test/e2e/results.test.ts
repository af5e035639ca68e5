import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { createToolgateClient, type ToolgateClient, ToolgateError } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { runInProcess } from "../cli/test-host.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { retryUntil } from "./gateway-client.ts";

const ORDERS = Array.from({ length: 500 }, (_, i) => ({ id: `O-${i}`, buyer: `buyer ${i % 40}`, total: i * 3 }));
const CSV = ["id,buyer,total", ...ORDERS.map(({ id, buyer, total }) => `${id},"${buyer}, Ltd",${total}`)].join("\n");
const LOG = Array.from({ length: 2_000 }, (_, i) => `2026-01-01T00:00:00Z INFO line ${i + 1}`).join("\n");
const SECRET = "token-that-nobody-may-read";
const KEY = "ab".repeat(32);

const running = new AsyncDisposableStack();
const taken: string[] = [];
let origin: string;
let gateway: OpenGateway;
let alice: ToolgateClient;

async function startUpstream(): Promise<Server> {
  const server = createServer((request, response) => {
    const kind = request.url?.slice(1);
    if (kind === "take") {
      void request.toArray().then((pieces) => {
        taken.push(Buffer.concat(pieces).toString());
        response.setHeader("content-type", "application/json").end('{"ok":true}');
      });
      return;
    }
    const [type, body] =
      kind === "csv"
        ? ["text/csv", CSV]
        : kind === "log"
          ? ["text/plain", `${LOG}\n${SECRET}`]
          : ["application/json", JSON.stringify({ data: { orders: ORDERS } })];
    response.setHeader("content-type", type).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function files(): Record<string, string> {
  const tool = (name: string, keys: Readonly<Record<string, unknown>> = {}): string =>
    JSON.stringify({
      name,
      description: "用于检查保存的结果 gives a result that is too long",
      type: "http",
      endpoint: `${origin}/${name}`,
      result: { max_length: 1_000 },
      ...keys,
    });
  return {
    "tools/orders.yaml": tool("orders", { result: { max_length: 1_000, truncation: "summary" } }),
    "tools/csv.yaml": tool("csv"),
    "tools/log.yaml": tool("log", { auth: { header_name: "x-token", secret_ref: "LOG_TOKEN" } }),
    "tools/private.yaml": tool("private", { result: { max_length: 1_000, handle: false } }),
    "tools/take.yaml": tool("take", {
      method: "POST",
      params: [
        { name: "rows", type: "array" },
        { name: "text", type: "string" },
        { name: "deep", type: "object" },
      ],
    }),
    "tools/literal.yaml": tool("literal", {
      method: "POST",
      endpoint: `${origin}/take`,
      argument_handles: "keep",
      params: [{ name: "text", type: "string" }],
    }),
  };
}

function client(port: number, user: string): ToolgateClient {
  const transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${port}` });
  return createToolgateClient(transport, { headers: { "x-user": user } });
}

const SETTINGS = { results: { keep: true }, identity: { trusted_header: { subject: "x-user" } } };

/** A gateway of a test's own. */
async function open(results: Readonly<Record<string, unknown>>, options: object = {}): Promise<OpenGateway> {
  const folder = await temporaryFolder();
  const settings = { ...SETTINGS, results: { keep: true, ...results } };
  const opened = await openGateway({ folder: folder.path, files: files(), settings, ...options });
  onTestFinished(async () => {
    await opened[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  return opened;
}

async function handleFrom(from: ToolgateClient, tool: string): Promise<string> {
  const { result } = await from.call(tool);
  return result?.truncation?.handle ?? "";
}

const reason = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "answered",
    (error: unknown) => (error instanceof ToolgateError ? error.reason : error),
  );

beforeAll(async () => {
  const server = running.adopt(await startUpstream(), (upstream) => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const address = server.address();
  origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const folder = running.use(await temporaryFolder());
  const env = { LOG_TOKEN: SECRET };
  gateway = running.use(await openGateway({ folder: folder.path, files: files(), settings: SETTINGS, env }));
  alice = client(gateway.port, "alice");
}, 180_000);

beforeEach(() => {
  taken.length = 0;
});

afterAll(() => running.disposeAsync());

test("a result that is too long is kept whole, and its shortened text names it within its limit", async () => {
  const { result } = await alice.call("orders");
  const handle = result?.truncation?.handle ?? "";
  expect(handle).toMatch(/^result:\/\/[A-Za-z0-9_-]{24}$/);
  const text = result?.content.map(({ part }) => (part.case === "text" ? part.value : "")).join("") ?? "";
  expect(text).toContain(`; whole: ${handle}]`);
  expect(text.length).toBeLessThanOrEqual(1_000);
  const cut = await alice.call("log");
  const mark = cut.result?.content.map(({ part }) => (part.case === "text" ? part.value : "")).join("") ?? "";
  expect(mark.endsWith(`; whole: ${cut.result?.truncation?.handle}]`)).toBe(true);
  expect(mark.length).toBeLessThanOrEqual(1_000);
});

test("JSON is read by path and page by page to its end, each page valid JSON within its size", async () => {
  const handle = await handleFrom(alice, "orders");
  const one = await alice.readResult(handle, { query: { json: { path: "data.orders[173]" } } });
  expect(one.json).toEqual(ORDERS[173]);
  const read: unknown[] = [];
  let page = await alice.readResult(handle, { query: { json: { path: "$.data.orders" } }, maxLength: 5_000 });
  for (;;) {
    expect(page.text.length).toBeLessThanOrEqual(5_000);
    if (Array.isArray(page.json)) read.push(...page.json);
    if (page.cursor === undefined) break;
    page = await alice.readResult(handle, { cursor: page.cursor, maxLength: 5_000 });
  }
  expect(read).toEqual(ORDERS);
  expect(page).toMatchObject({ tool: "orders", mimeType: "application/json", complete: true });
});

test("rows are read with the columns asked for, of JSON and of a table with quotes", async () => {
  const json = await handleFrom(alice, "orders");
  const rows = { columns: ["id", "total"], offset: 498, limit: 5 };
  const last = [ORDERS[498], ORDERS[499]];
  const ofJson = await alice.readResult(json, { query: { rows: { path: "/data/orders", ...rows } } });
  expect(ofJson.json).toEqual(last.map((row) => ({ id: row?.id, total: row?.total })));
  const csv = await handleFrom(alice, "csv");
  const ofCsv = await alice.readResult(csv, { query: { rows } });
  expect(ofCsv).toMatchObject({ mimeType: "text/csv", cursor: undefined });
  expect(ofCsv.json).toEqual(last.map((row) => ({ id: row?.id, total: String(row?.total) })));
  const buyers: unknown[] = [];
  let page = await alice.readResult(csv, { query: { rows: { columns: ["buyer"] } }, maxLength: 2_000 });
  for (;;) {
    if (Array.isArray(page.json)) buyers.push(...page.json);
    if (page.cursor === undefined) break;
    page = await alice.readResult(csv, { cursor: page.cursor, maxLength: 2_000 });
  }
  expect(buyers).toEqual(ORDERS.map(({ buyer }) => ({ buyer: `${buyer}, Ltd` })));
});

test("lines and bytes are read by their place, and on from there", async () => {
  const handle = await handleFrom(alice, "log");
  const { text, cursor } = await alice.readResult(handle, { query: { lines: { start: 1_000, count: 2 } } });
  expect(text.split("\n").filter(Boolean)).toEqual(LOG.split("\n").slice(999, 1_001));
  expect(cursor).toBeUndefined();
  let page = await alice.readResult(handle, { maxLength: 10_000 });
  let whole = page.text;
  while (page.cursor !== undefined) {
    page = await alice.readResult(handle, { cursor: page.cursor, maxLength: 10_000 });
    whole += page.text;
  }
  expect(whole.startsWith(LOG)).toBe(true);
  // Kept as it is given: without the secret that the upstream echoes.
  expect(whole.slice(LOG.length)).toBe("\n***");
  const bytes = await alice.readResult(handle, { query: { bytes: { offset: 5, length: 10 } } });
  expect(Buffer.from(bytes.data ?? []).toString()).toBe(LOG.slice(5, 15));
});

test("search finds plain text and regular expressions, by path in JSON and by line in text, and refuses what is not linear", async () => {
  const json = await handleFrom(alice, "orders");
  const found = await alice.readResult(json, { query: { search: { pattern: "O-173" } } });
  expect(found.json).toEqual({ matches: [{ path: "/data/orders/173/id", value: "O-173" }], searched_all: true });
  const log = await handleFrom(alice, "log");
  const lines = await alice.readResult(log, {
    query: { search: { pattern: "LINE 19[0-9]{2}$", regex: true, ignoreCase: true, limit: 30 } },
  });
  expect(lines.json).toMatchObject({ searched_all: false });
  expect(lines.text.match(/"line":/g)).toHaveLength(30);
  const rest = await alice.readResult(log, { cursor: lines.cursor ?? "" });
  expect(rest.text.match(/"byte":/g)).toHaveLength(30);
  const backwards = { query: { search: { pattern: "(a)\\1", regex: true } } };
  expect(await reason(alice.readResult(log, backwards))).toBe("RESULT_QUERY_INVALID");
});

test("another caller is told of a handle exactly what it is told of one that never was", async () => {
  const handle = await handleFrom(alice, "orders");
  const bob = client(gateway.port, "bob");
  const told = async (of: string): Promise<string> =>
    bob.readResult(of).then(String, (error: unknown) => String(error).replaceAll(of, "HANDLE"));
  const unknown = `result://${"A".repeat(24)}`;
  expect(await told(handle)).toBe(await told(unknown));
  expect(await reason(bob.readResult(handle))).toBe("RESULT_NOT_FOUND");
  expect(await reason(bob.call("result_read", { handle }))).toBe("RESULT_NOT_FOUND");
  expect(await reason(bob.call("take", { text: handle }))).toBe("RESULT_NOT_FOUND");
  expect(taken).toEqual([]);
});

test("models read on by the tools result_read and result_search, which are listed where results are kept", async () => {
  const names: string[] = [];
  for await (const { name } of alice.list()) names.push(name);
  expect(names).toEqual(expect.arrayContaining(["result_read", "result_search"]));
  const handle = await handleFrom(alice, "orders");
  const read = await alice.call("result_read", { handle, path: "data.orders", offset: 7, limit: 1 });
  expect(JSON.parse(read.result?.structuredJson ?? "")).toMatchObject({
    page: [ORDERS[7]],
    result: { tool: "orders" },
  });
  const table = await alice.call("result_read", { handle, as: "rows", path: "data.orders", columns: ["id"], limit: 2 });
  expect(JSON.parse(table.result?.structuredJson ?? "")).toMatchObject({ page: [{ id: "O-0" }, { id: "O-1" }] });
  const found = await alice.call("result_search", { handle, pattern: "O-49\\d$", regex: true, limit: 3 });
  const first = JSON.parse(found.result?.structuredJson ?? "");
  expect(first.page.matches).toHaveLength(3);
  const next = await alice.call("result_search", { handle, cursor: first.cursor });
  expect(JSON.parse(next.result?.structuredJson ?? "").page.matches[0]).toEqual({
    path: "/data/orders/493/id",
    value: "O-493",
  });
  expect(await reason(alice.call("result_read", { handle, path: "data.nothing" }))).toBe("ARGUMENTS_INVALID");
});

test("a handle as an argument is replaced by what it names, as the schema has it, unless the tool takes it as it is", async () => {
  const handle = await handleFrom(alice, "orders");
  await alice.call("take", {
    rows: `${handle}#/data/orders`,
    text: `${handle}#/data/orders/3`,
    deep: { first: `${handle}#/data/orders/0/id` },
  });
  expect(JSON.parse(taken[0] ?? "")).toEqual({ rows: ORDERS, text: JSON.stringify(ORDERS[3]), deep: { first: "O-0" } });
  await alice.call("take", { text: `see ${handle}` });
  expect(JSON.parse(taken[1] ?? "")).toEqual({ text: `see ${handle}` });
  await alice.call("literal", { text: handle });
  expect(JSON.parse(taken[2] ?? "")).toEqual({ text: handle });
  expect(await reason(alice.call("take", { rows: `${handle}#/data/none` }))).toBe("ARGUMENTS_INVALID");
  expect(await reason(alice.call("take", { rows: `${handle}#/data/orders/0` }))).toBe("ARGUMENTS_INVALID");
  expect(taken).toHaveLength(3);
});

test("`result.handle: false` keeps a tool's results from the disk", async () => {
  expect(await handleFrom(alice, "private")).toBe("");
});

test("a result that is over says that it is gone and how to have it again", async () => {
  const { port } = await open({ ttl: "1s" });
  const caller = client(port, "alice");
  const handle = await handleFrom(caller, "orders");
  let error: unknown;
  await retryUntil(
    async () => (error = await caller.readResult(handle).catch((thrown: unknown) => thrown)),
    (answer) => answer instanceof ToolgateError,
  );
  expect(error).toMatchObject({ reason: "RESULT_GONE", metadata: { tool: "orders" } });
  expect(String(error)).toContain('its time is over; call "orders" again with the same arguments');
  expect(await reason(client(port, "bob").readResult(handle))).toBe("RESULT_NOT_FOUND");
});

test("a caller over its quota loses its oldest results and nobody else's", async () => {
  const { port } = await open({ principal_bytes: 60_000 });
  const [one, two] = [client(port, "one"), client(port, "two")];
  const theirs = await handleFrom(two, "orders");
  const first = await handleFrom(one, "orders");
  const second = await handleFrom(one, "orders");
  const third = await handleFrom(one, "orders");
  expect(await reason(one.readResult(first))).toBe("RESULT_GONE");
  for (const [caller, handle] of [
    [one, second],
    [one, third],
    [two, theirs],
  ] as const) {
    expect(await reason(caller.readResult(handle))).toBe("answered");
  }
});

test("a result there is no room for is given shortened, with a notice and without a handle", async () => {
  const { port } = await open({ principal_bytes: 1_024 });
  const { result } = await client(port, "alice").call("orders");
  expect(result?.truncation).toMatchObject({ handle: "" });
  expect(result?.notices).toMatchObject([{ reason: "RESULT_NOT_KEPT" }]);
});

test("results outlive a restart, and what nobody names is removed at the start", async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const start = (): Promise<OpenGateway> => openGateway({ folder: folder.path, files: files(), settings: SETTINGS });
  const before = await start();
  const handle = await handleFrom(client(before.port, "alice"), "orders");
  await before.stop();
  const stray = join(folder.path, "state", "results", "stray");
  await writeFile(stray, "left by a crash");
  await using after = await start();
  const page = await client(after.port, "alice").readResult(handle, { query: { json: { path: "/data/orders/9" } } });
  expect(page.json).toEqual(ORDERS[9]);
  expect(await stat(stray).catch(() => "gone")).toBe("gone");
});

test("results stand on the disk for the gateway's user alone, sealed where there is a key, and damage is not given out", async () => {
  const { port, folder } = await open({ encryption_key: "RESULT_KEY" }, { env: { RESULT_KEY: KEY } });
  const caller = client(port, "alice");
  const handle = await handleFrom(caller, "orders");
  expect(await reason(caller.readResult(handle))).toBe("answered");
  const results = join(folder, "state", "results");
  for (const name of await readdir(results)) {
    const path = join(results, name);
    expect((await stat(path)).mode & 0o077).toBe(0);
    expect((await readFile(path)).includes("O-173")).toBe(false);
  }
  const path = join(results, handle.slice("result://".length));
  const bytes = await readFile(path);
  bytes[100] = (bytes[100] ?? 0) ^ 1;
  await writeFile(path, bytes);
  expect(await reason(caller.readResult(handle))).toBe("RESULT_GONE");
});

test("while the key is missing nothing is written, and the call goes on", async () => {
  const { port, folder } = await open({ encryption_key: "RESULT_KEY" });
  const { result } = await client(port, "alice").call("orders");
  expect(result?.notices).toMatchObject([{ reason: "RESULT_NOT_KEPT" }]);
  expect((await readdir(join(folder, "state", "results"))).filter((name) => !name.startsWith("index"))).toEqual([]);
});

test("the command line prints pages of a kept result and the places where something stands in it", async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  await using own = await openGateway({ folder: folder.path, files: files(), settings: { results: { keep: true } } });
  const run = (...args: string[]): ReturnType<typeof runInProcess> =>
    runInProcess([...args, "--address", `127.0.0.1:${own.port}`]);
  const called = await run("tool", "call", "orders");
  const [handle = ""] = /result:\/\/[\w-]{24}/.exec(called.stderr) ?? [];
  expect(called.stderr).toContain(`; toolgate result read ${handle} has it all`);
  const one = await run("result", "read", handle, "--path", "data.orders[3]");
  expect(JSON.parse(one.stdout)).toEqual(ORDERS[3]);
  const rows = await run("result", "read", handle, "--path", "data.orders", "--column", "id", "--limit", "2");
  expect(JSON.parse(rows.stdout)).toEqual([{ id: "O-0" }, { id: "O-1" }]);
  const first = await run("result", "search", handle, "O-49", "--limit", "1");
  const [, cursor = ""] = /--cursor (\S+)/.exec(first.stderr) ?? [];
  const second = await run("result", "search", handle, "--cursor", cursor, "--output", "json");
  expect(JSON.parse(second.stdout)).toMatchObject({ page: { searched_all: false }, result: { tool: "orders" } });
  expect((await run("result", "read", handle, "--rows", "--bytes")).code).toBe(2);
  expect((await run("result", "search", handle)).code).toBe(2);
  expect((await run("result", "read", `result://${"A".repeat(24)}`)).code).toBe(3);
});
