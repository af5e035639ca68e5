import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createToolgateClient, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { reasonOf, textOf, valueOf } from "../e2e/gateway-client.ts";
import { type ServerBed, startBed } from "./bed.ts";
import { node } from "./commands.ts";
import { installed } from "./installed.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const running = new AsyncDisposableStack();
let bed: ServerBed;
let client: ToolgateClient;
let folder: string;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "toolgate-servers-")));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "note.txt"), "第一行\nline two\n");
  await writeFile(join(folder, "dot.png"), Buffer.from(PNG, "base64"));
  const [everything, filesystem, memory, calc, dbhub] = await Promise.all([
    installed({ spec: "@modelcontextprotocol/server-everything@2026.8.31" }),
    installed({ spec: "@modelcontextprotocol/server-filesystem@2026.8.31" }),
    installed({ spec: "@modelcontextprotocol/server-memory@2026.8.31" }),
    installed({ spec: "@coo-quack/calc-mcp@2.1.1" }),
    // The version of its database that comes compiled.
    installed({ spec: "@bytebase/dbhub@0.21.2", overrides: { "better-sqlite3": "13.2.0" } }),
  ]);
  bed = running.use(
    await startBed({
      everything: { mcp: node(`${everything}/dist/index.js`) },
      files: { mcp: node(`${filesystem}/dist/index.js`, folder) },
      homeless: { mcp: { ...node(`${filesystem}/dist/index.js`), cwd: tmpdir() } },
      memory: { mcp: { ...node(`${memory}/dist/index.js`), env: { MEMORY_FILE_PATH: join(folder, "memory.json") } } },
      calc: { mcp: node(`${calc}/dist/index.js`) },
      database: { mcp: node(`${dbhub}/dist/index.js`, "--dsn", `sqlite://${join(folder, "shop.db")}`) },
    }),
  );
  const transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${bed.gateway.port}` });
  running.defer(() => transport.close());
  client = createToolgateClient(transport);
}, 300_000);

afterAll(async () => {
  await running.disposeAsync();
});

test("calc: its tools are listed one by one, one that works gives its result, one that fails its words [S2-15, S2-98]", async () => {
  const tools = await bed.tools("calc");
  expect(tools.length).toBe(21);
  expect(textOf(await bed.call("calc/math", { action: "eval", expression: "2+3*4" }))).toBe("14");
  const { result } = await bed.call("calc/math", { action: "eval", expression: "2+" });
  expect(result?.failure).toMatchObject({ reason: "TOOL_FAILED", retryable: false });
  expect(result?.failure?.message).toContain("Unexpected end");
});

test("filesystem: text and its JSON are given once, an image as bytes, a missing file as a failure [S2-104]", async () => {
  expect((await bed.tools("files")).length).toBe(14);
  const read = await bed.call("files/read_text_file", { path: join(folder, "note.txt") });
  expect(valueOf(read)).toEqual({ content: "第一行\nline two\n" });
  expect(read.result?.content).toEqual([]);
  expect(read.result?.notices).toEqual([]);
  const image = await bed.call("files/read_media_file", { path: join(folder, "dot.png") });
  const bytes = image.result?.content.find(({ part }) => part.case === "blob")?.part.value;
  expect(bytes).toMatchObject({ mimeType: "image/png", data: new Uint8Array(Buffer.from(PNG, "base64")) });
  const missing = await bed.call("files/read_text_file", { path: join(folder, "gone.txt") });
  expect(missing.result?.failure?.message).toContain("ENOENT");
  const outside = await bed.call("files/read_text_file", { path: "/etc/hostname" });
  expect(outside.result?.failure?.message).toContain("outside allowed directories");
});

test("memory: what was told is known afterwards, with what its output schema says", async () => {
  expect((await bed.tools("memory")).length).toBe(9);
  const entities = [{ name: "SO20241001", entityType: "order", observations: ["shipped"] }];
  const created = await bed.call("memory/create_entities", { entities });
  expect(created.stats?.effect).toBe(2);
  expect(valueOf(await bed.call("memory/read_graph"))).toMatchObject({ entities });
  const observations = [{ entityName: "nobody", contents: ["x"] }];
  const { result } = await bed.call("memory/add_observations", { observations });
  expect(result?.failure?.message).toContain("nobody");
});

test("filesystem without a folder refuses each call in its own words until one is declared", async () => {
  await bed.tools("homeless");
  const { result } = await bed.call("homeless/read_text_file", { path: join(folder, "note.txt") });
  expect(result?.failure?.message).toContain("outside allowed directories");
});

test("a database: rows come back, and wrong SQL is a failure with the database's words [S2-104]", async () => {
  expect((await bed.tools("database")).map(({ name }) => name)).toEqual([
    "database/execute_sql",
    "database/search_objects",
  ]);
  await bed.call("database/execute_sql", { sql: "CREATE TABLE orders (id TEXT, amount INTEGER)" });
  await bed.call("database/execute_sql", { sql: "INSERT INTO orders VALUES ('SO20241001', 12)" });
  const rows = await bed.call("database/execute_sql", { sql: "SELECT * FROM orders" });
  expect(JSON.parse(textOf(rows) || "null")).toMatchObject({
    success: true,
    data: { rows: [{ id: "SO20241001", amount: 12 }] },
  });
  const { result } = await bed.call("database/execute_sql", { sql: "SELECT * FROM orders_gone" });
  expect(result?.failure).toMatchObject({ reason: "TOOL_FAILED" });
  expect(result?.failure?.message).toContain("no such table: orders_gone");
});

test("everything: each kind of content is a part of its own", async () => {
  expect((await bed.tools("everything")).length).toBeGreaterThan(10);
  expect(textOf(await bed.call("everything/echo", { message: "你好" }))).toBe("Echo: 你好");
  const image = await bed.call("everything/get-tiny-image");
  expect(image.result?.content.map(({ part }) => part.case)).toEqual(["text", "blob", "text"]);
  const links = await bed.call("everything/get-resource-links", { count: 2 });
  expect(links.result?.content.map(({ part }) => part.case)).toEqual(["text", "link", "link"]);
  const reference = await bed.call("everything/get-resource-reference", { resourceType: "Text", resourceId: 1 });
  expect(reference.result?.content.map(({ resource }) => resource?.uri)).toContainEqual(
    expect.stringContaining("resource"),
  );
  const annotated = await bed.call("everything/get-annotated-message", { messageType: "error", includeImage: false });
  expect(annotated.result?.content[0]?.annotations).toMatchObject({ audience: ["user", "assistant"], priority: 1 });
  const structured = await bed.call("everything/get-structured-content", { location: "New York" });
  expect(structured.result?.notices).toEqual([]);
  expect(valueOf(structured)).toMatchObject({ temperature: expect.any(Number) });
  expect(structured.result?.content).toEqual([]);
});

test("everything: arguments that do not fit its schema never reach it", async () => {
  await bed.tools("everything");
  const reason = await bed.call("everything/get-sum", { a: "one", b: 2 }).catch(reasonOf);
  expect(reason).toBe("ARGUMENTS_INVALID");
});

test("everything: progress comes as it is told, and leaving the stream ends the call", async () => {
  await bed.tools("everything");
  const told: number[] = [];
  for await (const event of client.callStream("everything/trigger-long-running-operation", { duration: 1, steps: 4 })) {
    if (event.type === "progress") told.push(event.current);
  }
  expect(told).toEqual([1, 2, 3, 4]);
  const startMs = performance.now();
  for await (const event of client.callStream("everything/trigger-long-running-operation", {
    duration: 60,
    steps: 60,
  })) {
    if (event.type === "progress") break;
  }
  expect(performance.now() - startMs).toBeLessThan(30_000);
  expect(textOf(await bed.call("everything/echo", { message: "still there" }))).toContain("still there");
});

test("everything: what it asks in the middle of a call is answered by the caller, and by nobody else", async () => {
  await bed.tools("everything");
  const alone = await client.call("everything/trigger-elicitation-request");
  expect(alone.failure?.reason).toBe("INPUT_REQUIRED");
  const asked = await client.call("everything/trigger-elicitation-request", {}, { acceptsInput: true });
  const { state = "", requests = {} } = asked.needsInput ?? {};
  const [id = ""] = Object.keys(requests);
  expect(requests[id]).toMatchObject({ kind: "form", schema: { type: "object" } });
  const inputs = { [id]: { action: "accept", content: { name: "Grace" } } } as const;
  const done = await client.call("everything/trigger-elicitation-request", {}, { continuation: { state, inputs } });
  expect(done.failure).toBeUndefined();
  expect(done.text()).toContain("Grace");
});

test("nothing of a server is left when the gateway has ended", async () => {
  expect(await bed.end()).toEqual([]);
});
