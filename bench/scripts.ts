import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { createScriptAdapter } from "../src/adapters/script/index.ts";
import type { Upstream } from "../src/core/adapter.ts";
import { systemClock } from "../src/core/clock.ts";
import type { JsonObject } from "../src/core/json.ts";
import { silentLogger } from "../src/core/logger.ts";
import { ANONYMOUS } from "../src/core/principal.ts";
import { createEnvironmentSecrets } from "../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../src/secrets/secret-memory.ts";
import { median, percentile } from "./measure.ts";

// What a script costs: a program started by this process itself, by the launcher, and a worker that is there already;
// and for how long each start holds this process up, small and with much memory. Ratios within one run count.

const { values: flags } = parseArgs({
  options: { calls: { type: "string", default: "200" }, megabytes: { type: "string", default: "500" } },
});
const CALLS = Number(flags.calls);

/** Answers each line with a small result. */
const WORKER = `require("node:readline").createInterface({{ input: process.stdin }}).on("line", (line) => {{
  process.stdout.write(JSON.stringify({{ id: JSON.parse(line).id, result: {{ code: 0 }} }}) + "\\n");
}});`;
const SCRIPT = `process.stdout.write(JSON.stringify({{ code: 0 }}));`;

/** Figures of one way to run something. */
interface Figures {
  readonly p50: number;
  readonly p95: number;
  readonly perSecond: number;
  /** How late the event loop was, in milliseconds: of a hundred looks, the worst but one. */
  readonly stallMs: number;
}

async function openTool(keys: JsonObject): Promise<Upstream> {
  const adapter = createScriptAdapter({ environment: process.env, folder: tmpdir(), shell: false });
  const tool = {
    name: "measured",
    title: "",
    description: "",
    kind: "script",
    inputSchema: { type: "object", properties: {} },
    outputSchema: undefined,
    hints: {},
    labels: {},
    delivery: "conclusive",
    enabled: true,
  } as const;
  const timeouts = { connectMs: 60_000, readMs: 60_000, idleMs: 60_000 };
  const settings = { timeouts, maxResponseBytes: 2 ** 20, format: "auto", pool: {}, reach: "all" } as const;
  const configured = adapter.configure(keys, tool, settings);
  if (!configured.ok) throw new Error(configured.issues.map(({ message }) => message).join("\n"));
  const secrets = createEnvironmentSecrets({}, new SecretMemory());
  const deps = { clock: systemClock, logger: silentLogger, secrets, changed: () => undefined };
  return adapter.open(configured.config, deps, new AbortController().signal);
}

let lastCall = 0;

async function callTool(tool: Upstream): Promise<void> {
  const call = { tool: "measured", arguments: {}, validateOnly: false, maxLength: undefined };
  lastCall += 1;
  const events = tool.invoke(call, {
    callId: `call-${lastCall}`,
    principal: ANONYMOUS,
    signal: new AbortController().signal,
    deadlineMs: Date.now() + 60_000,
    attempt: 1,
    explain: false,
    sessionId: undefined,
    turnId: undefined,
    taskId: undefined,
    toolCallId: undefined,
    traceparent: undefined,
    logger: silentLogger,
  });
  for await (const event of events) {
    if (event.type === "upstream-result" && event.result.failure !== undefined) throw new Error("the program failed");
  }
}

async function spawnHere(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  child.stdout.resume();
  child.stderr.resume();
  await once(child, "close");
}

async function measure(calls: number, run: () => Promise<void>): Promise<Figures> {
  for (let i = 0; i < 5; i++) await run();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const times: number[] = [];
  delay.enable();
  const startMs = performance.now();
  for (let i = 0; i < calls; i++) {
    const fromMs = performance.now();
    await run();
    times.push(performance.now() - fromMs);
  }
  const seconds = (performance.now() - startMs) / 1_000;
  delay.disable();
  return {
    p50: median(times),
    p95: percentile(times, 0.95) ?? Number.NaN,
    perSecond: calls / seconds,
    stallMs: delay.percentile(99) / 1e6,
  };
}

function print(name: string, { p50, p95, perSecond, stallMs }: Figures): void {
  const cells = [name.padEnd(44), p50.toFixed(3), p95.toFixed(3), perSecond.toFixed(0), stallMs.toFixed(2)];
  console.log(`| ${cells.map((cell) => cell.padStart(9)).join(" | ")} |`);
}

async function starts(size: string): Promise<void> {
  await using tool = await openTool({ command: "true" });
  const own = await measure(CALLS, () => spawnHere("true", []));
  const launched = await measure(CALLS, () => callTool(tool));
  print(`true, spawned by a process of ${size}`, own);
  print(`true, by the launcher, gateway of ${size}`, launched);
  console.log(`  launcher to own spawn, p50: ${(launched.p50 / own.p50).toFixed(2)}`);
}

async function workers(): Promise<void> {
  const calls = Math.max(20, Math.floor(CALLS / 4));
  await using once_ = await openTool({ command: process.execPath, args: ["-e", SCRIPT] });
  await using kept = await openTool({
    command: process.execPath,
    args: ["-e", WORKER],
    worker: { max_calls: 1_000_000 },
  });
  const spawned = await measure(calls, () => callTool(once_));
  const pooled = await measure(CALLS * 20, () => callTool(kept));
  print("node script, started for each call", spawned);
  print("node script, kept as a worker", pooled);
  console.log(`  worker to start for each call, calls/s: ${(pooled.perSecond / spawned.perSecond).toFixed(0)}`);
}

console.log(`| ${"".padEnd(44)} |    p50 ms |    p95 ms |   calls/s | stall p99 |`);
await starts("small");
const ballast = Array.from({ length: Number(flags.megabytes) }, (_, i) => Buffer.alloc(1024 * 1024, i));
await starts(`${flags.megabytes} MB`);
await workers();
console.log(`with ${ballast.length} MB of memory in use`);
