import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ToolGatewayService } from "../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { percentile } from "./measure.ts";
import { declaration, PROBE, probe } from "./scale/declarations.ts";
import type { Usage } from "./scale/meter.ts";
import { PAGE_SIZE, PAGES, type ScaleReply, type ScaleStep } from "./scale/steps.ts";
import { listenAnywhere } from "./servers/ready.ts";

const USAGE = `npm run bench:scale -- [options]
  --tools N     declarations in the folder (default 10000)
  --writes N    single writes, one after the other, each until the new version was called (default 1000)
Nothing of it passes or fails: times depend on the machine. The same is measured with no tools, to compare with.`;

/** Files of one folder. */
const FOLDER_SIZE = 1_000;
/** How long nothing happens while the idle process is measured. */
const IDLE_MS = 3_000;
/** Pages asked for at a time. */
const IN_FLIGHT = 10;
/** Between two tries of a tool whose new version is not there yet. */
const RETRY_MS = 2;

type GatewayClient = Client<typeof ToolGatewayService>;

/** A process with a gateway. */
class Subject implements AsyncDisposable {
  readonly #child: ChildProcess;

  constructor(folder: string) {
    const script = fileURLToPath(new URL("servers/scale.ts", import.meta.url));
    this.#child = fork(script, [folder], { execArgv: ["--expose-gc"] });
  }

  step(step: ScaleStep): Promise<ScaleReply> {
    this.#child.send(step);
    return new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error("the measured process ended"));
      this.#child.once("exit", onExit);
      this.#child.once("message", (reply) => {
        this.#child.off("exit", onExit);
        resolve(reply as ScaleReply);
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.disconnect();
    await exit;
  }
}

/** What calls of the probe reach: it knows which version of the declaration was called last. */
interface Upstream extends AsyncDisposable {
  readonly port: number;
  lastPath(): string;
}

async function startUpstream(): Promise<Upstream> {
  let last = "";
  const server = createServer((request, response) => {
    last = request.url ?? "";
    response.end("ok");
  });
  const port = await listenAnywhere(server);
  return {
    port,
    lastPath: () => last,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function writeTools(folder: string, count: number): Promise<void> {
  for (let start = 0; start < count; start += FOLDER_SIZE) {
    const part = join(folder, "tools", `part-${start / FOLDER_SIZE}`);
    await mkdir(part, { recursive: true });
    const numbers = Array.from({ length: Math.min(FOLDER_SIZE, count - start) }, (_, i) => start + i);
    await Promise.all(numbers.map((n) => writeFile(join(part, `tool-${n}.yaml`), declaration(n))));
  }
}

/** Writes the probe's declaration anew and calls until its new version answers. Milliseconds from before the write. */
async function changeToCallable(
  client: GatewayClient,
  upstream: Upstream,
  change: { readonly file: string; readonly revision: string },
): Promise<number> {
  const start = performance.now();
  await writeFile(change.file, probe(upstream.port, change.revision));
  for (;;) {
    await client.call({ invocation: { name: PROBE } });
    if (upstream.lastPath() === `/${change.revision}`) return performance.now() - start;
    await delay(RETRY_MS);
  }
}

/** All figures of a gateway with so many tools. @returns what it used to load. */
async function measure(tools: number, writes: number, upstream: Upstream): Promise<Usage> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-scale-"));
  try {
    await writeTools(folder, tools);
    const file = join(folder, "tools", "probe.yaml");
    await mkdir(join(folder, "tools"), { recursive: true });
    await writeFile(file, probe(upstream.port, "v0"));
    console.log(`\n## ${tools} tools\n`);
    await using gateway = new Subject(folder);
    const { usage: loaded, port } = await gateway.step("load");
    tell("cold load", loaded, tools === 0 ? "" : `, ${per(loaded.cpuMs, tools)} ms of CPU a tool`);
    await delay(IDLE_MS);
    tell("nothing to do", (await gateway.step("read")).usage);
    const baseUrl = `http://127.0.0.1:${port}`;
    const sessionManager = new Http2SessionManager(baseUrl);
    const connect = (acceptCompression?: []): GatewayClient =>
      createClient(
        ToolGatewayService,
        createGrpcTransport({ baseUrl, sessionManager, ...(acceptCompression && { acceptCompression }) }),
      );
    await measureChanges(connect(), { gateway, upstream, file, writes });
    await gateway.step("quiet");
    await measureList(connect(), gateway, "gRPC");
    await measureList(connect([]), gateway, "gRPC without gzip");
    sessionManager.abort();
    await using registry = new Subject(folder);
    const { usage } = await registry.step("pages");
    console.log(`a page of a List, in process: ${per(usage.cpuMs * 1000, PAGES)} µs of CPU`);
    return loaded;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureChanges(
  client: GatewayClient,
  parts: { readonly gateway: Subject; readonly upstream: Upstream; readonly file: string; readonly writes: number },
): Promise<void> {
  const { gateway, upstream, file, writes } = parts;
  await gateway.step("read");
  const first = await changeToCallable(client, upstream, { file, revision: "first" });
  tell(`one change, callable after ${first.toFixed(0)} ms`, (await gateway.step("read")).usage);
  const times: number[] = [];
  for (let n = 0; n < writes; n++) times.push(await changeToCallable(client, upstream, { file, revision: `w${n}` }));
  if (times.length === 0) return;
  const [p50 = 0, p99 = 0, p100 = 0] = [0.5, 0.99, 1].map((share) => percentile(times, share));
  tell(
    `${writes} changes, callable after ${p50.toFixed(0)} ms (p50), ${p99.toFixed(0)} (p99), ${p100.toFixed(0)} (p100)`,
    (await gateway.step("read")).usage,
  );
}

async function measureList(client: GatewayClient, gateway: Subject, over: string): Promise<void> {
  const list = async (): Promise<number> => {
    let tools = 0;
    for (let n = 0; n < PAGES; n += IN_FLIGHT) {
      const pages = await Promise.all(Array.from({ length: IN_FLIGHT }, () => client.list({ pageSize: PAGE_SIZE })));
      tools = pages[0]?.tools.length ?? 0;
    }
    return tools;
  };
  await list();
  await gateway.step("read");
  const tools = await list();
  const { usage } = await gateway.step("read");
  console.log(`a page of a List (${tools} tools), ${over}: ${per(usage.cpuMs * 1000, PAGES)} µs of CPU`);
}

function tell(what: string, usage: Usage, more = ""): void {
  const { wallMs, cpuMs, longestDelayMs, longestTurnMs, rssBytes, heapBytes } = usage;
  console.log(
    `${what}: ${wallMs.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of CPU${more}; loop late by at most ${longestDelayMs.toFixed(1)} ms, longest turn ${longestTurnMs.toFixed(1)} ms of CPU; ${mebibytes(rssBytes)} MiB resident, ${mebibytes(heapBytes)} of them heap`,
  );
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}

function per(total: number, count: number): string {
  return (total / count).toFixed(2);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      tools: { type: "string", default: "10000" },
      writes: { type: "string", default: "1000" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const tools = Number(values.tools);
  await using upstream = await startUpstream();
  const without = await measure(0, 0, upstream);
  const loaded = await measure(tools, Number(values.writes), upstream);
  const rss = per((loaded.rssBytes - without.rssBytes) / 1024, tools);
  const heap = per((loaded.heapBytes - without.heapBytes) / 1024, tools);
  console.log(`\nmemory a tool: ${rss} KiB resident, ${heap} KiB of heap`);
}

await main();
