import { type ChildProcess, spawn } from "node:child_process";
import type { FrameKind, ProgramExit, StartRequest } from "./frames.ts";
import { jsonPayload, NO_PAYLOAD, numberPayload } from "./frames.ts";
import { endGroup, signalGroup } from "./process-group.ts";

/** How much of the end of the error output is kept. */
const ERROR_TAIL_BYTES = 16 * 1024;

/** A program that is over may have left its output to a process that lives on: so long must it have been quiet. */
const QUIET_MS = 200;

/** How soon error output is told of while the program runs. */
const TELL_MS = 100;

/** Sends a message about the program. */
type Send = (kind: FrameKind, payload: Buffer) => void;

/** A program that the launcher runs, as the leader of a process group of its own. Nothing of the group outlives it. */
export class Program {
  readonly #request: StartRequest;
  readonly #send: Send;
  readonly #onGone: () => void;
  readonly #child: ChildProcess | undefined;
  #exit: ProgramExit | undefined;
  #open = 2;
  #onTheWayBytes = 0;
  #paused = false;
  #errors: Buffer[] = [];
  #errorBytes = 0;
  #quiet: NodeJS.Timeout | undefined;
  #telling: NodeJS.Timeout | undefined;
  #clearing = false;

  /** Starts it. `onGone` is called when nothing of it is left. */
  constructor(request: StartRequest, send: Send, onGone: () => void) {
    this.#request = request;
    this.#send = send;
    this.#onGone = onGone;
    this.#child = this.#spawn();
    const pid = this.#child?.pid;
    if (this.#child === undefined || pid === undefined) return;
    send("started", numberPayload(pid));
    this.#listen(this.#child);
  }

  /** Bytes for its standard input. */
  input(bytes: Buffer): void {
    this.#child?.stdin?.write(bytes);
  }

  /** Its standard input ends. */
  inputEnd(): void {
    this.#child?.stdin?.end();
  }

  /** The gateway has taken output. */
  credit(bytes: number): void {
    this.#onTheWayBytes -= bytes;
    if (!this.#paused || this.#onTheWayBytes >= this.#request.windowBytes) return;
    this.#paused = false;
    this.#child?.stdout?.resume();
    this.#waitForQuiet();
  }

  /** Ends it with all of its group. */
  kill(): void {
    if (this.#clearing) return;
    this.#clear();
    // It must not hang in a write on its way out.
    this.#child?.stdout?.resume();
  }

  #spawn(): ChildProcess | undefined {
    const { file, args, cwd, env, input } = this.#request;
    try {
      const child = spawn(file, args, {
        cwd,
        env,
        detached: process.platform !== "win32",
        windowsHide: true,
        stdio: [input ? "pipe" : "ignore", "pipe", "pipe"],
      });
      child.on("error", (error) => {
        if (child.pid === undefined) this.#refuse(error);
      });
      return child;
    } catch (error) {
      this.#refuse(error);
      return undefined;
    }
  }

  #refuse(error: unknown): void {
    const code = error instanceof Error && "code" in error ? String(error.code) : "UNKNOWN";
    this.#send("refused", jsonPayload({ code }));
    this.#onGone();
  }

  #listen(child: ChildProcess): void {
    child.stdin?.on("error", () => undefined);
    child.stdout?.on("data", (chunk: Buffer) => this.#output(chunk));
    child.stderr?.on("data", (chunk: Buffer) => this.#error(chunk));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("error", () => undefined);
      stream?.on("close", () => {
        this.#open -= 1;
        this.#settle();
      });
    }
    child.on("exit", (code, signal) => {
      this.#exit = { code, signal };
      this.#settle();
    });
  }

  #output(chunk: Buffer): void {
    if (this.#clearing) return;
    this.#onTheWayBytes += chunk.length;
    this.#send("output", chunk);
    if (this.#onTheWayBytes >= this.#request.windowBytes) {
      this.#paused = true;
      this.#child?.stdout?.pause();
    }
    this.#waitForQuiet();
  }

  /** Error output is always read, so that it never holds a program up; its end is kept. */
  #error(chunk: Buffer): void {
    if (this.#clearing) return;
    this.#errorBytes += chunk.length;
    this.#errors.push(chunk);
    if (this.#errors.length > 1) {
      this.#errors = [Buffer.concat(this.#errors).subarray(-ERROR_TAIL_BYTES)];
    }
    if (this.#request.tellErrors === true) this.#telling ??= setTimeout(() => this.#tellErrors(), TELL_MS);
    this.#waitForQuiet();
  }

  #tellErrors(): void {
    clearTimeout(this.#telling);
    this.#telling = undefined;
    this.#send("errors", Buffer.concat([numberPayload(this.#errorBytes), ...this.#errors.map(tail)]));
  }

  #settle(): void {
    if (this.#exit === undefined) return;
    if (this.#open === 0) this.#finish();
    else this.#waitForQuiet();
  }

  /** Output that nobody reads now is not quiet: it waits. */
  #waitForQuiet(): void {
    if (this.#exit === undefined || this.#clearing) return;
    clearTimeout(this.#quiet);
    if (!this.#paused) this.#quiet = setTimeout(() => this.#finish(), QUIET_MS);
  }

  #finish(): void {
    if (this.#exit === undefined || this.#clearing) return;
    this.#tellErrors();
    this.#send("ended", jsonPayload(this.#exit));
    this.#clear();
  }

  #clear(): void {
    this.#clearing = true;
    clearTimeout(this.#quiet);
    clearTimeout(this.#telling);
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    if (this.#exit !== undefined && !signalGroup(pid, 0)) this.#gone();
    else {
      const { graceMs } = this.#request;
      endGroup({ pid, graceMs, leaderGone: () => this.#exit !== undefined, onEmpty: () => this.#gone() });
    }
  }

  #gone(): void {
    for (const stream of this.#child?.stdio ?? []) stream?.destroy();
    this.#send("gone", NO_PAYLOAD);
    this.#onGone();
  }
}

function tail(bytes: Buffer): Buffer {
  return bytes.subarray(-ERROR_TAIL_BYTES);
}
