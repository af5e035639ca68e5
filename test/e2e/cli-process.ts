import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** What a process left behind. */
export interface Ended {
  /** Exit code, or the signal that killed it. */
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
  /** From the last output to the end, in milliseconds. */
  readonly lingeredMs: number;
}

/** A `toolgate` that runs as a process of its own; killed at the end of the scope if it has not ended by then. */
export interface CliProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves with the text so far once the pattern is in it; rejects when the process ends without it. */
  output(stream: "stdout" | "stderr", pattern: RegExp): Promise<RegExpExecArray>;
}

/** How to start one. */
export interface CliSetup {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly input?: string;
  /** Instead of src/main.ts, from the repository's root. */
  readonly script?: string;
  /** Arguments of Node.js itself. */
  readonly nodeArguments?: readonly string[];
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Starts the command line as a process. */
export function startToolgate(argv: readonly string[], setup: CliSetup = {}): CliProcess {
  const script = `${ROOT}${setup.script ?? "src/main.ts"}`;
  const child = spawn(process.execPath, [...(setup.nodeArguments ?? []), script, ...argv], {
    cwd: setup.cwd ?? ROOT,
    env: { PATH: process.env.PATH, HOME: "/nonexistent", XDG_CACHE_HOME: `${ROOT}node_modules/.cache`, ...setup.env },
  });
  const text = { stdout: "", stderr: "" };
  let lastOutput = performance.now();
  const heard = new EventTarget();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (piece: string) => {
      text[name] += piece;
      lastOutput = performance.now();
      heard.dispatchEvent(new Event("output"));
    });
  }
  child.stdin.on("error", () => undefined);
  child.stdin.end(setup.input ?? "");
  const ended = (async (): Promise<Ended> => {
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    heard.dispatchEvent(new Event("output"));
    return { code: code ?? signal ?? -1, ...text, lingeredMs: performance.now() - lastOutput };
  })();
  return {
    child,
    ended,
    async output(stream, pattern) {
      while (true) {
        const found = pattern.exec(text[stream]);
        if (found !== null) return found;
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`ended without ${String(pattern)}: ${text.stdout}${text.stderr}`);
        }
        await once(heard, "output");
      }
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Runs the command line as a process to its end. */
export async function toolgate(argv: readonly string[], setup: CliSetup = {}): Promise<Ended> {
  await using running = startToolgate(argv, setup);
  return await running.ended;
}
