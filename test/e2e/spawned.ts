import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

/** Root of the repository. */
export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** A process that starts in a second takes thirty where ten others want the same core. */
const READY_MS = 90_000;

/** For hooks and tests that start a process. */
export const START_TIMEOUT_MS = 120_000;

/** A Node process of ours that keeps running. */
export interface SpawnedProcess extends AsyncDisposable {
  readonly pid: number;
  /** Everything it has written, stdout and stderr together. */
  output(): string;
  /** The first match of the pattern in the output, as soon as it is there. Where it does not come, the process is ended and this throws. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ends it and waits for that. Resolves with the exit code; null: it died of a signal. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts a script of the repository. Disposing kills it. */
export function spawnScript(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): SpawnedProcess {
  const child = spawn(process.execPath, [...args], {
    cwd: REPOSITORY,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const read = (chunk: Buffer): void => {
    output += chunk.toString("utf8");
  };
  child.stdout.on("data", read);
  child.stderr.on("data", read);
  const exited = once(child, "exit");
  // A test that fails half-way must not leave a gateway behind.
  const onParentExit = (): void => void child.kill("SIGKILL");
  process.once("exit", onParentExit);
  child.once("exit", () => process.off("exit", onParentExit));
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    await exited;
    return child.exitCode;
  };
  return {
    pid: child.pid ?? 0,
    output: () => output,
    async waitFor(pattern) {
      try {
        return await waitForOutput(child, pattern, () => output);
      } catch (error) {
        await stop("SIGKILL");
        throw error;
      }
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop("SIGKILL");
    },
  };
}

function waitForOutput(
  child: ChildProcessByStdio<null, Readable, Readable>,
  pattern: RegExp,
  output: () => string,
): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      child.stdout.off("data", look);
      child.stderr.off("data", look);
      child.off("exit", onExit);
      act();
    };
    const look = (): void => {
      const match = pattern.exec(output());
      if (match !== null) settle(() => resolve(match));
    };
    const fail = (what: string): void =>
      settle(() => reject(new Error(`${what} before it wrote ${String(pattern)}:\n${output()}`)));
    const onExit = (): void => fail("the process ended");
    const timer = setTimeout(() => fail(`${READY_MS} ms passed`), READY_MS);
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.once("exit", onExit);
    look();
  });
}
