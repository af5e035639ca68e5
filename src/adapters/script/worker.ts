import type { RunningProgram } from "../shared/launcher/running-program.ts";
import { LineSplitter, type PieceLimit } from "../shared/line-splitter.ts";
import { OutputDecoder } from "./output-decoder.ts";

/** A program that answers one call after the other, a line each. */
export class Worker {
  readonly program: RunningProgram;
  /** The environment it was started with, to tell whether that is still right. */
  readonly environment: string;
  readonly #decoder = new OutputDecoder("utf-8");
  readonly #lines: LineSplitter;
  readonly #waiting: string[] = [];
  #calls = 0;

  constructor(program: RunningProgram, environment: string, limit: PieceLimit) {
    this.program = program;
    this.environment = environment;
    this.#lines = new LineSplitter("lf", limit);
  }

  /** Calls it was given. */
  get calls(): number {
    return this.#calls;
  }

  /** Gives it a call. */
  ask(line: string): void {
    this.#calls += 1;
    this.program.write(Buffer.from(`${line}\n`));
  }

  /** The next line it writes; `undefined`: it is over. */
  async next(): Promise<string | undefined> {
    while (true) {
      const line = this.#waiting.shift();
      if (line !== undefined) return line;
      const piece = await this.program.read();
      if (piece === undefined) return undefined;
      this.#waiting.push(...this.#lines.push(this.#decoder.push(piece)));
    }
  }
}
