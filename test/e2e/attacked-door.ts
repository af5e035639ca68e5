import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ConnectionLimits } from "../../src/service/connection-limits.ts";
import { completed, textResult } from "../service/fake-registry.ts";
import { serve } from "../service/serve.ts";

/** What the process says when it is asked how it is. */
export interface DoorState {
  /** Memory in use after collecting garbage: heap, buffers and what C++ holds for JavaScript. */
  readonly usedBytes: number;
  /** Calls that run. */
  readonly leases: number;
  /** Calls of `flood` and `wait` that were ever begun. */
  readonly begun: number;
}

/** A front door in a process of its own, so that what attacks it counts not in its memory, and may end it. */
export interface AttackedDoor extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  state(): Promise<DoorState>;
  /** Resident memory of the process; 0 where the system does not tell. */
  residentBytes(): number;
  /** Whether the process lives. */
  alive(): boolean;
}

/** Code points of the result of the tool `big`: as long as results get. */
const BIG_LENGTH = 700_000;

/** Starts one with the tools `echo`, `big`, `flood` (64 KB again and again, without an end) and `wait` (for its caller to leave). */
export async function startAttackedDoor(connection: Partial<ConnectionLimits>): Promise<AttackedDoor> {
  const child = fork(fileURLToPath(import.meta.url), ["serve", JSON.stringify(connection)], {
    execArgv: ["--expose-gc"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const exited = once(child, "exit");
  const [port] = (await once(child, "message")) as [number];
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async state() {
      const answer = once(child, "message") as Promise<[DoorState]>;
      child.send("state");
      return (await answer)[0];
    },
    residentBytes: () => (process.platform === "linux" ? residentBytes(child.pid) : 0),
    alive: () => child.exitCode === null && child.signalCode === null,
    async [Symbol.asyncDispose]() {
      process.off("exit", kill);
      kill();
      await exited;
    },
  };
}

function residentBytes(pid: number | undefined): number {
  return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
}

async function serveHere(connection: Partial<ConnectionLimits>): Promise<void> {
  const { registry, port } = await serve({ connection });
  let begun = 0;
  registry.add({ name: "big" }, async function* () {
    yield completed(textResult("x".repeat(BIG_LENGTH)));
  });
  registry.add({ name: "flood" }, async function* () {
    begun++;
    while (true) {
      // As an upstream's answer does, it comes with the event loop.
      await setImmediate();
      yield { type: "delta", index: 0, text: "x".repeat(64_000) };
    }
  });
  registry.add({ name: "wait" }, async function* (_call, { signal }) {
    begun++;
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    yield completed();
  });
  process.on("message", () => {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    process.send?.({ usedBytes: heapUsed + external, leases: registry.leases, begun } satisfies DoorState);
  });
  process.once("disconnect", () => process.exit());
  process.send?.(port);
}

if (process.argv[2] === "serve") await serveHere(JSON.parse(process.argv[3] ?? "{}") as Partial<ConnectionLimits>);
