import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ToolGatewayService } from "../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { ToolState } from "../gen/toolgate/v1/tool_pb.ts";
import { createGateway, createSecrets, parseGatewayConfig, silentLogger } from "../src/index.ts";
import { interleaved, median } from "./measure.ts";

// How long the tools of many MCP servers take to be there, of the sound ones alone and with others that hang beside
// them. The difference counts: what hangs is to hold up nobody.

const { values: flags } = parseArgs({
  options: {
    servers: { type: "string", default: "200" },
    rounds: { type: "string", default: "3" },
    /** What `servers` of gateway.yaml says, as JSON. */
    settings: { type: "string", default: "{}" },
  },
});

const TINY = fileURLToPath(new URL("servers/tiny-mcp.sh", import.meta.url));

/** Longest wait for the tools. */
const LIMIT_MS = 120_000;

type Kind = "programs" | "remote";

/** The block `mcp` of a server; one that hangs takes everything and says nothing. */
type Block = (hangs: boolean) => object;

async function untilThere(block: Block, count: number, withHanging: boolean): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-bench-"));
  await mkdir(join(folder, "tools"));
  let sound = 0;
  for (let i = 0; i < count; i++) {
    const hangs = i % 3 === 0;
    if (!hangs) sound += 1;
    if (hangs && !withHanging) continue;
    const declaration = { name: `s${i}`, type: "mcp", mcp: block(hangs) };
    await writeFile(join(folder, "tools", `s${i}.json`), JSON.stringify(declaration));
  }
  const settings = { listen: "127.0.0.1:0", servers: JSON.parse(flags.settings) as unknown };
  const outcome = parseGatewayConfig(JSON.stringify(settings), { file: "gateway.yaml", folder });
  if (!outcome.ok) throw new Error(outcome.problems.map(({ message }) => message).join("\n"));
  const startMs = performance.now();
  const environment = { PATH: process.env["PATH"] };
  const gateway = await createGateway({
    config: outcome.config,
    secrets: createSecrets({}),
    logger: silentLogger,
    environment,
  });
  try {
    await untilListed(gateway.url, sound);
    return performance.now() - startMs;
  } finally {
    await gateway.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function untilListed(baseUrl: string, count: number): Promise<void> {
  const client = createClient(ToolGatewayService, createGrpcTransport({ baseUrl }));
  const endMs = performance.now() + LIMIT_MS;
  while (performance.now() < endMs) {
    const { tools } = await client.list({ pageSize: 1_000 });
    if (tools.filter(({ state }) => state === ToolState.READY).length === count) return;
    await delay(50);
  }
  throw new Error(`not ${count} tools after ${LIMIT_MS} ms`);
}

async function measure(kind: Kind, block: Block): Promise<string> {
  const took = { alone: [] as number[], together: [] as number[] };
  for (const name of interleaved(["alone", "together"] as const, Number(flags.rounds))) {
    took[name].push(await untilThere(block, Number(flags.servers), name === "together"));
  }
  const [alone, together] = [median(took.alone), median(took.together)];
  const all = ["alone", "together"].map((name) => took[name as keyof typeof took].map((ms) => ms.toFixed(0)).join(" "));
  return `${kind}: sound ones alone ${alone.toFixed(0)} ms, a third hanging ${together.toFixed(0)} ms, difference ${(together - alone).toFixed(0)} ms (${all.join(" / ")})\n`;
}

/** Servers over streamable HTTP, one for each path; those below `hang` never answer. */
const server = createServer((request, response) => {
  if (request.url?.startsWith("/hang") === true) return;
  let text = "";
  request.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  request.on("end", () => {
    const { id, method } = JSON.parse(text === "" ? "{}" : text) as { readonly id?: unknown; readonly method?: string };
    if (request.method !== "POST") response.writeHead(405).end();
    else if (id === undefined) response.writeHead(202).end();
    else {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, ...replyTo(method) }));
    }
  });
});

function replyTo(method: string | undefined): object {
  if (method === "initialize") {
    const serverInfo = { name: "tiny", version: "1" };
    return { result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo } };
  }
  if (method === "tools/list") return { result: { tools: [{ name: "work", inputSchema: { type: "object" } }] } };
  return { error: { code: -32_601, message: "unknown method" } };
}

await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;
process.stdout.write(
  await measure("programs", (hangs) =>
    hangs ? { command: "sh", args: ["-c", "exec cat >/dev/null"] } : { command: "sh", args: [TINY] },
  ),
);
process.stdout.write(
  await measure("remote", (hangs) => ({ url: `http://127.0.0.1:${port}/${hangs ? "hang" : "sound"}` })),
);
server.closeAllConnections();
server.close();
