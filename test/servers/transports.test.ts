import { once } from "node:events";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createToolgateClient, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { textOf } from "../e2e/gateway-client.ts";
import { spawnScript } from "../e2e/spawned.ts";
import { type ServerBed, startBed } from "./bed.ts";
import { node } from "./commands.ts";
import { installed } from "./installed.ts";

const running = new AsyncDisposableStack();
let bed: ServerBed;
let client: ToolgateClient;
let folder: string;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a server that listens by itself, and resolves when it does. */
async function startServer(
  args: readonly string[],
  port: number,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const server = running.use(spawnScript(args, env));
  for (let i = 0; i < 600; i++) {
    const answers = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (answers) return;
    await delay(100);
  }
  throw new Error(`no server on port ${port}:\n${server.output()}`);
}

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "toolgate-servers-")));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  const everything = await installed({ spec: "@modelcontextprotocol/server-everything@2026.8.31" });
  const git = await installed({ spec: "@cyanheads/git-mcp-server@2.15.3" });
  const [streamable, sse, gitPort] = [await freePort(), await freePort(), await freePort()];
  const own = node(`${everything}/dist/index.js`).args;
  await startServer([...own, "streamableHttp"], streamable, { PORT: String(streamable) });
  await startServer([...own, "sse"], sse, { PORT: String(sse) });
  await startServer(node(`${git}/dist/index.js`).args, gitPort, {
    MCP_TRANSPORT_TYPE: "http",
    MCP_HTTP_PORT: String(gitPort),
    MCP_HTTP_HOST: "127.0.0.1",
    GIT_BASE_DIR: folder,
    LOGS_DIR: join(folder, "logs"),
  });
  bed = running.use(
    await startBed({
      stdio: { mcp: node(`${everything}/dist/index.js`) },
      streamable: { mcp: { url: `http://127.0.0.1:${streamable}/mcp` } },
      sse: { mcp: { url: `http://127.0.0.1:${sse}/sse`, transport: "sse" } },
      git: { mcp: { url: `http://127.0.0.1:${gitPort}/mcp` } },
    }),
  );
  const transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${bed.gateway.port}` });
  running.defer(() => transport.close());
  client = createToolgateClient(transport);
}, 600_000);

afterAll(async () => {
  await running.disposeAsync();
});

test.each(["stdio", "streamable", "sse"])(
  "everything over %s: list, call, progress, a question, and an end",
  async (name) => {
    expect((await bed.tools(name)).length).toBeGreaterThan(10);
    expect(textOf(await bed.call(`${name}/echo`, { message: "你好" }))).toBe("Echo: 你好");
    const bad = await bed.call(`${name}/get-resource-reference`, { resourceType: "Text", resourceId: -1 });
    expect(bad.result?.failure?.reason).toMatch(/TOOL_FAILED|UPSTREAM_REJECTED/);
    const told: number[] = [];
    for await (const event of client.callStream(`${name}/trigger-long-running-operation`, { duration: 1, steps: 4 })) {
      if (event.type === "progress") told.push(event.current);
    }
    expect(told).toEqual([1, 2, 3, 4]);
    for await (const event of client.callStream(`${name}/trigger-long-running-operation`, {
      duration: 60,
      steps: 60,
    })) {
      if (event.type === "progress") break;
    }
    expect(textOf(await bed.call(`${name}/echo`, { message: "still there" }))).toContain("still there");
  },
);

test.each(["streamable", "sse"])("everything over %s: what it asks is answered by the caller", async (name) => {
  await bed.tools(name);
  const tool = `${name}/trigger-elicitation-request`;
  const asked = await client.call(tool, {}, { acceptsInput: true });
  const { state = "", requests = {} } = asked.needsInput ?? {};
  const [id = ""] = Object.keys(requests);
  const inputs = { [id]: { action: "accept", content: { name: "Grace" } } } as const;
  const done = await client.call(tool, {}, { continuation: { state, inputs } });
  expect(done.text()).toContain("Grace");
});

test("a server that breaks down at a question of the new era is spoken to in the old one", async () => {
  expect((await bed.tools("git")).length).toBe(28);
  expect(await bed.protocol("git")).toBe("2025-11-25");
  const path = join(folder, "repository");
  const made = await bed.call("git/git_init", { path });
  expect(made.result?.failure).toBeUndefined();
  const { result } = await bed.call("git/git_status", { path: join(folder, "nothing-here") });
  expect(result?.failure).toBeDefined();
});

test("nothing of a server is left when the gateway has ended", async () => {
  expect(await bed.end()).toEqual([]);
});
