import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { call, openServer, testFolder, textOf } from "./fixture.ts";

/** The entry of a server's package. */
function entryOf(server: string): string {
  return fileURLToPath(
    new URL(`../../../node_modules/@modelcontextprotocol/server-${server}/dist/index.js`, import.meta.url),
  );
}

test("the server for files lists a folder and reads and writes in it alone", async () => {
  await using folder = await testFolder();
  await writeFile(join(folder.path, "order.txt"), "SO20241001\n");
  const mcp = { command: process.execPath, args: [entryOf("filesystem"), folder.path] };
  await using server = await openServer({ mcp });
  await server.ready();
  expect(server.names()).toEqual(expect.arrayContaining(["read_text_file", "write_file", "list_directory"]));
  expect(textOf(await call(server, "read_text_file", { path: join(folder.path, "order.txt") }))).toContain(
    "SO20241001",
  );
  const written = await call(server, "write_file", { path: join(folder.path, "new.txt"), content: "42" });
  expect(written.result?.failure).toBeUndefined();
  expect(await readFile(join(folder.path, "new.txt"), "utf8")).toBe("42");
  const outside = await call(server, "read_text_file", { path: "/etc/hostname" });
  expect(outside.result?.failure?.message).toMatch(/outside allowed directories/);
});

test("the server for memories keeps what it is told, with a result that is data", async () => {
  await using folder = await testFolder();
  const mcp = {
    command: process.execPath,
    args: [entryOf("memory")],
    env: { MEMORY_FILE_PATH: join(folder.path, "memory.json") },
  };
  await using server = await openServer({ mcp });
  await server.ready();
  const entity = { name: "order_7", entityType: "order", observations: ["paid"] };
  await call(server, "create_entities", { entities: [entity] });
  const { result } = await call(server, "search_nodes", { query: "paid" });
  expect(result?.value).toMatchObject({ entities: [entity] });
});

test("the server of everything tells of all of its progress, and gives what is no text", async () => {
  const mcp = { command: process.execPath, args: [entryOf("everything")] };
  await using server = await openServer({ mcp });
  await server.ready();
  expect(textOf(await call(server, "echo", { message: "hello" }))).toContain("hello");
  const outcome = await call(server, "trigger-long-running-operation", { duration: 1, steps: 4 });
  expect(outcome.events.filter(({ type }) => type === "progress")).toHaveLength(4);
  const image = await call(server, "get-tiny-image");
  expect(image.result?.content.map(({ type }) => type)).toContain("blob");
});
