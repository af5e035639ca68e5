import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createRandom } from "../core/random.ts";
import { createGatewayClient, type GatewayClient, reasonOf } from "./gateway-client.ts";
import { startGateway } from "./gateway-process.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

const CALLS = 500;
const AT_ONCE = 25;
/** Each call is aborted so many milliseconds after so many messages; not even `started` has come at 0. */
const AFTER_MESSAGES = 6;
const ABORT_WITHIN_MS = 30;
const KINDS = ["slow", "events", "ends", "script", "mcp/endless"] as const;
const MCP_SERVER = fileURLToPath(new URL("../adapters/mcp/fake-program.ts", import.meta.url));

interface Upstream extends AsyncDisposable {
  readonly port: number;
  readonly sockets: ReadonlySet<Socket>;
  /** Requests it had. */
  requests(): number;
  /** Breaks every connection of the moment. */
  kill(): void;
}

/** Answers late, with events without end, or with a stream that ends soon. */
async function startUpstream(): Promise<Upstream> {
  const sockets = new Set<Socket>();
  let requests = 0;
  const server: Server = createServer((request, response) => {
    requests += 1;
    if (request.url === "/slow") {
      const timer = setTimeout(() => response.setHeader("content-type", "text/plain").end("late"), 60);
      response.once("close", () => clearTimeout(timer));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const timer = setInterval(() => response.write("data: x\n\n"), 2);
    response.once("close", () => clearInterval(timer));
    if (request.url !== "/ends") return;
    setTimeout(() => {
      clearInterval(timer);
      response.end();
    }, 30).unref();
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    sockets,
    requests: () => requests,
    kill: () => server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function declarations(port: number): Readonly<Record<string, string>> {
  const tool = (name: string, keys: object): [string, string] => [
    `${name}.yaml`,
    JSON.stringify({ name, description: "Streams until it is told to stop", delivery: "incremental", ...keys }),
  ];
  const http = (name: string): [string, string] =>
    tool(name, { type: "http", endpoint: `http://127.0.0.1:${port}/${name}`, circuit_breaker: { enabled: false } });
  const script = { command: "sh", cwd: "..", args: ["-c", "echo $$ >> pids; while :; do echo x; sleep 0.02; done"] };
  return Object.fromEntries([
    http("slow"),
    http("events"),
    http("ends"),
    tool("script", { type: "script", ...script }),
    tool("mcp", { type: "mcp", mcp: { command: process.execPath, args: [MCP_SERVER, "{}", "mcp.log"], cwd: ".." } }),
  ]);
}

/** Reads a stream until it is aborted. Fails where it ends in a way that no such stream may. */
async function abortedCall(client: GatewayClient, name: string, random: () => number): Promise<void> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let left = Math.floor(random() * AFTER_MESSAGES);
  const arm = (): void => {
    timer = setTimeout(() => stop.abort(), random() * ABORT_WITHIN_MS);
  };
  if (left === 0) arm();
  try {
    for await (const { event } of client.service.callStream({ invocation: { name } }, { signal: stop.signal })) {
      if (--left === 0) arm();
      if (event.case === "completed") break;
    }
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectError);
    expect(reasonOf(error)).not.toBe("INTERNAL");
  } finally {
    clearTimeout(timer);
  }
}

/** Ids of the calls that the MCP server got, and of those that it was told to cancel. */
async function mcpCalls(folder: string): Promise<{ readonly called: string[]; readonly cancelled: string[] }> {
  const lines = (await readFile(join(folder, "mcp.log"), "utf8")).split("\n").filter((line) => line.startsWith("{"));
  const messages = lines.map(
    (line) => JSON.parse(line) as { id?: number; method?: string; params: { requestId?: number } },
  );
  const idsOf = (method: string, id: (message: (typeof messages)[number]) => unknown): string[] =>
    messages.filter((message) => message.method === method).map((message) => String(id(message)));
  return {
    called: idsOf("tools/call", ({ id }) => id).toSorted(),
    cancelled: idsOf("notifications/cancelled", ({ params }) => params.requestId).toSorted(),
  };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("500 streams aborted at any moment, while their upstream breaks, leave nothing behind and the gateway running [R-D07]", {
  timeout: START_TIMEOUT_MS + 120_000,
}, async () => {
  await using upstream = await startUpstream();
  const env = { NODE_OPTIONS: "--unhandled-rejections=strict" };
  await using gateway = await startGateway({ tools: declarations(upstream.port), env });
  using client = createGatewayClient(gateway.port);
  await expect
    .poll(() => client.service.get({ name: "mcp/endless" }).then(() => true, reasonOf), { timeout: 60_000 })
    .toBe(true);
  const random = createRandom(7);
  let begun = 0;
  const caller = async (): Promise<void> => {
    while (begun < CALLS) {
      begun += 1;
      if (begun % 50 === 0) upstream.kill();
      await abortedCall(client, KINDS[begun % KINDS.length] ?? "slow", random);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  const pids = (await readFile(join(gateway.folder, "pids"), "utf8").catch(() => "")).split("\n").filter(Boolean);
  expect(pids.length).toBeGreaterThan(0);
  await expect.poll(() => pids.map(Number).filter(isAlive), { timeout: 20_000 }).toEqual([]);
  const { called } = await mcpCalls(gateway.folder);
  expect(called.length).toBeGreaterThan(CALLS / 20);
  await expect.poll(async () => (await mcpCalls(gateway.folder)).cancelled, { timeout: 20_000 }).toEqual(called);
  expect(upstream.requests()).toBeGreaterThan(CALLS / 4);
  // Those that are kept for later calls go after 4 s.
  await expect.poll(() => upstream.sockets.size, { timeout: 60_000 }).toBe(0);
  const { result } = await client.call("ends");
  expect(result?.failure).toBeUndefined();
  expect(gateway.output()).not.toMatch(/"reason":"INTERNAL"|UnhandledPromise|"level":"error"/);
});
