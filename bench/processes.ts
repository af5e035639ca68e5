import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { LoadPlan, LoadReply, LoadResult } from "./measure.ts";
import type { Ports } from "./servers/ready.ts";

/** Of util-linux; not needed, see `pin`. */
const PINNING_TOOL = "taskset";

/** Longest a server may take to listen. */
const READY_MS = 30_000;

/** A server in a process of its own. */
export interface ServerProcess extends AsyncDisposable {
  readonly pid: number;
  readonly ports: Ports;
}

/** The load generator in a process of its own. */
export interface LoadProcess extends AsyncDisposable {
  /** @throws where a call of the plan did not succeed. */
  run(plan: LoadPlan): Promise<LoadResult>;
}

/**
 * Starts `bench/servers/<name>.ts` and waits until it listens.
 *
 * @param core CPU to pin it to; without `taskset` or with one CPU it stays where the system puts it.
 */
export async function startServer(name: string, core: number, args: readonly string[] = []): Promise<ServerProcess> {
  const child = start(`servers/${name}.ts`, core, args);
  const ports = await nextMessage<Ports>(child, AbortSignal.timeout(READY_MS));
  if (child.pid === undefined) throw new Error(`${name} did not start`);
  return { pid: child.pid, ports, [Symbol.asyncDispose]: () => end(child) };
}

/** Starts the load generator. */
export function startLoad(core: number): LoadProcess {
  const child = start("load/main.ts", core, []);
  return {
    async run(plan) {
      child.send(plan);
      const reply = await nextMessage<LoadReply>(child);
      if (!reply.ok) throw new Error(`${plan.client} ${plan.kind} ${plan.target}: ${reply.error}`);
      return reply.result;
    },
    [Symbol.asyncDispose]: () => end(child),
  };
}

/** What a child of ours sends next; our own scripts, so its shape is known. @throws where the child ends instead. */
function nextMessage<T>(child: ChildProcess, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      child.off("message", onMessage);
      child.off("exit", onExit);
      signal?.removeEventListener("abort", onAbort);
      act();
    };
    const onMessage = (message: unknown): void => settle(() => resolve(message as T));
    const onExit = (): void => settle(() => reject(new Error("the process ended")));
    const onAbort = (): void => settle(() => reject(new Error("the process said nothing in time")));
    child.on("message", onMessage);
    child.on("exit", onExit);
    signal?.addEventListener("abort", onAbort);
  });
}

function start(script: string, core: number, args: readonly string[]): ChildProcess {
  // connect-node writes a line for each stream that a client left; only those before a crash are of interest.
  let lastWords = "";
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = fork(path, args, { stdio: ["ignore", "ignore", "pipe", "ipc"] });
  child.stderr?.on("data", (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString("utf8")).slice(-2000);
  });
  child.once("exit", (code) => {
    if (code !== null && code !== 0) process.stderr.write(`${script} exited with ${code}: ${lastWords}\n`);
  });
  if (child.pid !== undefined) pin(child.pid, core);
  return child;
}

function pin(pid: number, core: number): void {
  if (availableParallelism() < 2) return;
  try {
    execFileSync(PINNING_TOOL, ["-acp", String(core), String(pid)], { stdio: "ignore" });
  } catch {
    // No taskset here: the figures are noisier, and still fair, since all subjects run alike.
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  // They all exit when their parent is gone, and clean up on that way.
  child.disconnect();
  await exit;
}
