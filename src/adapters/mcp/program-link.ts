import type { TransportSendOptions } from "@modelcontextprotocol/client";
import type { Clock } from "../../core/clock.ts";
import { type JsonObject, parseJson, stringifyJson } from "../../core/json.ts";
import type { StartRequest } from "../shared/launcher/frames.ts";
import type { Launcher } from "../shared/launcher/launcher.ts";
import type { ProgramEnd, RunningProgram } from "../shared/launcher/running-program.ts";
import { MessageLines, type ReadLine } from "./message-lines.ts";
import type { Noise } from "./noise.ts";
import { type RequestWatch, ServerLink } from "./server-link.ts";

/** Output that may wait for its reader before the server has to. */
const WINDOW_BYTES = 1024 * 1024;

/** How long a server may take to end once its input did. */
const INPUT_END_MS = 2_000;

/** From TERM to KILL. */
const KILL_GRACE_MS = 3_000;

/** Code of an answer that is over the limit; within the range of JSON-RPC for such uses. */
export const ANSWER_TOO_LARGE = -32_050;

/** What a program is started with. */
export type ServerProgram = Pick<StartRequest, "file" | "args" | "cwd" | "env">;

/** What a link to a program needs. */
export interface ProgramLinkOptions {
  readonly launcher: Launcher;
  readonly program: ServerProgram;
  readonly clock: Clock;
  /** Most bytes of one message. */
  readonly maxBytes: number;
  readonly noise: Noise;
}

/** The system did not start the program. */
export class StartRefused extends Error {
  /** The system's word, such as `ENOENT`. */
  readonly code: string;

  constructor(code: string) {
    super(`the system did not start the program (${code})`);
    this.name = "StartRefused";
    this.code = code;
  }
}

/** A server that is a program: messages are lines of its standard input and output. */
export class ProgramLink extends ServerLink {
  readonly #options: ProgramLinkOptions;
  #program: RunningProgram | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ProgramLinkOptions) {
    super();
    this.#options = options;
  }

  /** The SDK knows a link to a process by this and by `pid`. */
  get stderr(): null {
    return null;
  }

  get pid(): number | null {
    return this.#program?.pid ?? null;
  }

  /** How the program ended; undefined while it runs, and where it was ended from here. */
  get end(): ProgramEnd | undefined {
    return this.#program?.end;
  }

  /** The end of its error output, as far as it was told. */
  get errors(): string {
    const { end } = this;
    const bytes = end?.kind === "exited" ? end.errors : this.#program?.errors;
    return bytes?.toString() ?? "";
  }

  /** @throws StartRefused. */
  override async start(): Promise<void> {
    const { launcher, program } = this.#options;
    if (!launcher.hasRoom) throw new StartRefused("LIMIT");
    const limits = { graceMs: KILL_GRACE_MS, windowBytes: WINDOW_BYTES, tellErrors: true };
    const started = launcher.start({ ...program, input: true, ...limits });
    this.#program = started;
    await started.started();
    const { end } = started;
    if (end?.kind === "refused") throw new StartRefused(end.code);
    void this.#read(started);
  }

  /** Ends the program: its input, then TERM, then KILL, each to its whole group. Resolves when nothing of it is left. */
  override close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  /** Ends the program at once. */
  kill(): Promise<void> {
    this.#program?.kill();
    return this.close();
  }

  protected override transmit(
    message: JsonObject,
    _options: TransportSendOptions,
    watch: RequestWatch | undefined,
  ): Promise<void> {
    const program = this.#program;
    if (program === undefined || program.end !== undefined || this.#closing !== undefined) {
      return Promise.reject(new Error("the server has ended"));
    }
    program.write(Buffer.from(`${stringifyJson(message)}\n`));
    watch?.sent();
    return Promise.resolve();
  }

  protected override cancelled(id: string): void {
    const watch = this.watchOf(id);
    if (watch !== undefined) this.forget(watch);
  }

  async #read(program: RunningProgram): Promise<void> {
    const lines = new MessageLines(this.#options.maxBytes);
    for (let chunk = await program.read(); chunk !== undefined; chunk = await program.read()) {
      for (const line of lines.push(chunk)) this.#take(line);
    }
    this.closed();
  }

  #take(line: ReadLine): void {
    const { noise } = this.#options;
    if (line.kind === "cut") {
      // Some write the id first, others last.
      const id = /"id"\s*:\s*"?(\d+)"?/.exec(line.head)?.[1] ?? /.*"id"\s*:\s*"?(\d+)"?/s.exec(line.tail)?.[1];
      if (id === undefined) noise.add(line.head);
      else this.refuse(id, { code: ANSWER_TOO_LARGE, message: String(line.bytes) });
      return;
    }
    if (line.text.trim() === "") return;
    const value = jsonOf(line.text);
    if (value === undefined || !this.receive(value, { bytes: line.bytes })) noise.add(line.text);
  }

  async #end(): Promise<void> {
    const program = this.#program;
    if (program === undefined || program.end?.kind === "refused") {
      this.closed();
      return;
    }
    program.endInput();
    await this.#goneWithin(program, INPUT_END_MS);
    if (program.end === undefined) program.kill();
    await program.gone;
    this.closed();
  }

  #goneWithin(program: RunningProgram, limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(limitMs, resolve);
      void program.gone.then(() => {
        timer[Symbol.dispose]();
        resolve();
      });
    });
  }
}

function jsonOf(text: string): ReturnType<typeof parseJson> | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
