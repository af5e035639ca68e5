import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { loadavg, tmpdir } from "node:os";
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
import { openStreams, type SilentUpstream, silent, startSilentUpstream } from "./scale/streams.ts";
import { type Figure, loopFigures, table } from "./scale/table.ts";
import { listenAnywhere } from "./servers/ready.ts";

const USAGE = `npm run bench:scale -- [options]
  --tools N     declarations in the folder (default 10000)
  --writes N    single writes, one after the other, each until the new version was called (default 1000)
  --streams N   idle streams of each kind, opened where there are no tools (default 5000)
  --different   no two declarations have a part in common, such as the same params (default: those of one shape do)
About 4 minutes. Nothing of it passes or fails: times depend on the machine. The same is measured with no tools, to
compare with.`;

/** Files of one folder. */
const FOLDER_SIZE = 1_000;
/** How long nothing happens while the idle process is measured. */
const IDLE_MS = 3_000;
/** Pages asked for at a time. */
const IN_FLIGHT = 10;
/** Between two tries of a tool whose new version is not there yet. */
const RETRY_MS = 2;

/** How long idle streams are left alone before they are measured. */
const SETTLE_MS = 2_000;

/** Streams that are opened and closed again before it counts. */
const FIRST_STREAMS = 20;

/** What is aimed at, on a machine without other work, by the name of the figure. */
const GOALS = (tools: number, writes: number, streams: number): readonly (readonly [name: string, goal: string])[] => [
  ["cold load", tools === 10_000 ? "below 5000 ms" : ""],
  ["cold load: loop held up", "below 50 ms more than without tools"],
  ["one change, callable after", "below 200 ms"],
  ["one change: loop held up", "below 50 ms"],
  [`${writes} changes, callable after`, "p100 below 1000 ms"],
  ["page of a List, in process", "below 0.20 ms"],
  [`Watch, each of ${streams}`, "below 60 KiB"],
  [`CallStream on a silent upstream, each of ${streams}`, "below 60 KiB"],
];

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

async function writeTools(folder: string, { tools: count, different }: Run): Promise<void> {
  for (let start = 0; start < count; start += FOLDER_SIZE) {
    const part = join(folder, "tools", `part-${start / FOLDER_SIZE}`);
    await mkdir(part, { recursive: true });
    const numbers = Array.from({ length: Math.min(FOLDER_SIZE, count - start) }, (_, i) => start + i);
    await Promise.all(numbers.map((n) => writeFile(join(part, `tool-${n}.yaml`), declaration(n, different))));
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

/** What one run is about. */
interface Run {
  readonly tools: number;
  readonly different: boolean;
  readonly writes: number;
  readonly streams: number;
  readonly upstream: Upstream;
  readonly silent: SilentUpstream;
}

/** The figures of a gateway, and what it used to load. */
interface Measured {
  readonly figures: readonly Figure[];
  readonly loaded: Usage;
}

/** All figures of a gateway with so many tools. */
async function measure(run: Run): Promise<Measured> {
  const { upstream, silent: silentUpstream } = run;
  const folder = await mkdtemp(join(tmpdir(), "toolgate-scale-"));
  try {
    await writeTools(folder, run);
    const file = join(folder, "tools", "probe.yaml");
    await mkdir(join(folder, "tools"), { recursive: true });
    await writeFile(file, probe(upstream.port, "v0"));
    await writeFile(join(folder, "tools", "silent.yaml"), silent(silentUpstream.port));
    await using gateway = new Subject(folder);
    const { usage: loaded, port = 0 } = await gateway.step("load");
    const figures: Figure[] = [...loopFigures("cold load", loaded), memoryFigure("resident once loaded", loaded)];
    await delay(IDLE_MS);
    figures.push({ name: `idle for ${IDLE_MS / 1000} s`, value: cpu((await gateway.step("read")).usage) });
    const client = connectTo(port);
    figures.push(...(await measureChanges(client.service(), { gateway, upstream, file, writes: run.writes })));
    if (run.streams > 0) figures.push(...(await measureStreams(folder, run)));
    await gateway.step("quiet");
    figures.push(await measureList(client.service(), gateway, "gRPC"));
    figures.push(await measureList(client.service([]), gateway, "gRPC without gzip"));
    client.close();
    await using registry = new Subject(folder);
    const { usage } = await registry.step("pages");
    const pages = `${per(usage.loopMs, PAGES)} ms of the loop, ${per(usage.cpuMs, PAGES)} with its helpers`;
    return { figures: [...figures, { name: "page of a List, in process", value: pages }], loaded };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function connectTo(port: number): { service(acceptCompression?: []): GatewayClient; close(): void } {
  const baseUrl = `http://127.0.0.1:${port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  return {
    service: (acceptCompression) =>
      createClient(
        ToolGatewayService,
        createGrpcTransport({ baseUrl, sessionManager, ...(acceptCompression && { acceptCompression }) }),
      ),
    close: () => sessionManager.abort(),
  };
}

async function measureChanges(
  client: GatewayClient,
  parts: { readonly gateway: Subject; readonly upstream: Upstream; readonly file: string; readonly writes: number },
): Promise<readonly Figure[]> {
  const { gateway, upstream, file, writes } = parts;
  await gateway.step("read");
  const first = await changeToCallable(client, upstream, { file, revision: "first" });
  const { usage } = await gateway.step("read");
  const figures = [
    { name: "one change, callable after", value: `${first.toFixed(0)} ms` },
    ...loopFigures("one change", usage),
  ];
  const times: number[] = [];
  for (let n = 0; n < writes; n++) times.push(await changeToCallable(client, upstream, { file, revision: `w${n}` }));
  if (times.length === 0) return figures;
  const [p50 = 0, p99 = 0, p100 = 0] = [0.5, 0.99, 1].map((share) => percentile(times, share));
  const value = `p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)}, p100 ${p100.toFixed(0)} ms`;
  return [...figures, { name: `${writes} changes, callable after`, value }];
}

/** What an idle stream of each kind costs, in a process of its own: memory that others gave back would hide it. */
async function measureStreams(folder: string, run: Run): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const [kind, what] of [
    ["watch", "Watch"],
    ["call", "CallStream on a silent upstream"],
  ] as const) {
    await using gateway = new Subject(folder);
    const { port = 0 } = await gateway.step("load");
    await gateway.step("quiet");
    {
      await using _first = await openStreams(port, kind, FIRST_STREAMS);
    }
    const { usage: before } = await gateway.step("read");
    await using _streams = await openStreams(port, kind, run.streams);
    if (kind === "call") await run.silent.waiting(run.streams);
    await delay(SETTLE_MS);
    const { usage: opened } = await gateway.step("read");
    const resident = per((opened.rssBytes - before.rssBytes) / 1024, run.streams);
    const heap = per((opened.heapBytes - before.heapBytes) / 1024, run.streams);
    figures.push({ name: `${what}, each of ${run.streams}`, value: `${resident} KiB resident, ${heap} KiB of heap` });
  }
  return figures;
}

async function measureList(client: GatewayClient, gateway: Subject, over: string): Promise<Figure> {
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
  const value = `${per(usage.cpuMs, PAGES)} ms of CPU (${tools} tools)`;
  return { name: `page of a List, ${over}`, value };
}

function memoryFigure(name: string, { rssBytes, heapBytes }: Usage): Figure {
  return { name, value: `${mebibytes(rssBytes)} MiB, ${mebibytes(heapBytes)} of them heap` };
}

function cpu({ cpuMs }: Usage): string {
  return `${cpuMs.toFixed(0)} ms of CPU`;
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
      streams: { type: "string", default: "5000" },
      different: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const tools = Number(values.tools);
  const writes = Number(values.writes);
  await using upstream = await startUpstream();
  await using silentUpstream = await startSilentUpstream();
  const common = { different: values.different, upstream, silent: silentUpstream };
  const without = await measure({ ...common, tools: 0, writes: 0, streams: Number(values.streams) });
  const many = await measure({ ...common, tools, writes, streams: 0 });
  const rss = per((many.loaded.rssBytes - without.loaded.rssBytes) / 1024, tools);
  const heap = per((many.loaded.heapBytes - without.loaded.heapBytes) / 1024, tools);
  const memory = { name: "memory a tool", value: `${rss} KiB resident, ${heap} KiB of heap` };
  const goals = new Map(GOALS(tools, writes, Number(values.streams)));
  console.log(`\nNode.js ${process.version}, ${tools} tools, load of the machine ${loadavg()[0]?.toFixed(1)}\n`);
  console.log(table(without.figures, [...many.figures, memory], goals).join("\n"));
}

await main();
