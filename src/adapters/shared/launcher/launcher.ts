import { type ChildProcess, spawn } from "node:child_process";
import { getCompileCacheDir } from "node:module";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { FrameReader, type StartRequest, writeFrame } from "./frames.ts";
import { signalGroup } from "./process-group.ts";
import { RunningProgram } from "./running-program.ts";

/** Most programs at a time, those that are being ended included. */
const MAX_PROGRAMS = 512;

/** The source, or what was compiled of it. */
const ENTRY = fileURLToPath(new URL(`main${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));

/** A Node.js needs these on Windows. */
const NEEDED_VARIABLES = ["SystemRoot", "TEMP", "TMP"] as const;

/**
 * Starts programs by way of the launcher process, which runs while anybody retains it. One that dies is started anew for
 * the next program.
 */
export class Launcher {
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #ending = new Set<LauncherProcess>();
  #process: LauncherProcess | undefined;
  #users = 0;

  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.#environment = environment;
  }

  /** Keeps the launcher process running until the same number of releases; starts it, so that no call waits for it. */
  retain(): void {
    this.#users += 1;
    this.#running();
  }

  /** Ends the launcher process where nobody needs it any more; resolves when that is gone. */
  async release(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#process?.close();
    this.#process = undefined;
    await Promise.all([...this.#ending].map((each) => each.ended));
  }

  /** Whether there is room for one more program. */
  get hasRoom(): boolean {
    return this.size < MAX_PROGRAMS;
  }

  /** Programs that run. */
  get size(): number {
    return this.#process?.size ?? 0;
  }

  /** Starts a program. What comes of it, a refusal too, stands in what is returned. */
  start(request: StartRequest): RunningProgram {
    return this.#running().start(request);
  }

  #running(): LauncherProcess {
    if (this.#process !== undefined) return this.#process;
    const started = new LauncherProcess(this.#environment, () => {
      this.#ending.delete(started);
      if (this.#process === started) this.#process = undefined;
    });
    this.#ending.add(started);
    this.#process = started;
    return started;
  }
}

class LauncherProcess {
  readonly #child: ChildProcess;
  readonly #link: Duplex;
  readonly #programs = new Map<number, RunningProgram>();
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #onEnd: () => void;
  #lastId = 0;

  constructor(environment: Readonly<Record<string, string | undefined>>, onEnd: () => void) {
    this.#onEnd = onEnd;
    const env: Record<string, string | undefined> = {};
    for (const name of NEEDED_VARIABLES) env[name] = environment[name];
    // Compiled code is kept where the gateway keeps its own; programs do not hear of it.
    env["NODE_COMPILE_CACHE"] = getCompileCacheDir();
    // A session of its own: what a terminal or a shell sends to the gateway's group is not for it.
    this.#child = spawn(process.execPath, [ENTRY], {
      env,
      detached: process.platform !== "win32",
      windowsHide: true,
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    });
    this.#link = this.#child.stdio[3] as Duplex;
    const reader = new FrameReader();
    this.#link.on("data", (chunk: Buffer) => {
      for (const frame of reader.push(chunk)) {
        this.#programs.get(frame.id)?.take(frame);
        if (frame.kind === "gone" || frame.kind === "refused") this.#programs.delete(frame.id);
      }
    });
    this.#link.on("error", () => undefined);
    this.#child.on("error", () => this.#end());
    this.#child.on("close", () => this.#end());
  }

  /** Resolves when the process is gone. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Programs that are not gone. */
  get size(): number {
    return this.#programs.size;
  }

  start(request: StartRequest): RunningProgram {
    this.#lastId += 1;
    const id = this.#lastId;
    const program = new RunningProgram(request, (kind, payload) => writeFrame(this.#link, kind, id, payload));
    this.#programs.set(id, program);
    return program;
  }

  /** The launcher ends what still runs, then itself. */
  close(): void {
    this.#link.end();
  }

  #end(): void {
    this.#onEnd();
    for (const program of this.#programs.values()) {
      // Nobody else is there to do it.
      if (program.pid !== undefined) signalGroup(program.pid, "SIGKILL");
      program.lose();
    }
    this.#programs.clear();
    this.#link.destroy();
    this.#ended.resolve();
  }
}
