import { stat } from "node:fs/promises";
import type { Clock } from "../core/clock.ts";

/** How often a file is looked at, at most. */
const LOOK_MS = 1_000;

/** What a watched file works with. */
export interface WatchedFileOptions {
  readonly file: string;
  readonly clock: Clock;
  /** What changes with it. Default: of the file itself. */
  stateOf?(): Promise<string>;
  /** Reads the file, which may be another. What it throws leaves in force what was read before. */
  read(): Promise<void>;
  /** Told once of each state of the file that cannot be read. */
  failed(error: unknown): void;
}

/**
 * A file that is read again when it is another. It is looked at when somebody needs it, and no more than once a second,
 * so that it takes no timer and nothing where nobody calls.
 */
export class WatchedFile {
  readonly #options: WatchedFileOptions;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #settled: string | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: WatchedFileOptions) {
    this.#options = options;
  }

  /** Reads the file. @throws what `read` throws. */
  async start(): Promise<void> {
    const { clock, read } = this.#options;
    this.#lookedMs = clock.monotonicMs();
    this.#settled = await this.#state();
    await read();
  }

  /** Undefined: nothing is to be waited for. Never rejects. */
  fresh(): Promise<void> | undefined {
    if (this.#looking !== undefined) return this.#looking;
    const now = this.#options.clock.monotonicMs();
    if (now - this.#lookedMs < LOOK_MS) return undefined;
    this.#lookedMs = now;
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  #state(): Promise<string> {
    const { file, stateOf } = this.#options;
    return stateOf === undefined ? stateOfFile(file) : stateOf();
  }

  async #look(): Promise<void> {
    const { read, failed } = this.#options;
    const state = await this.#state();
    if (state === this.#settled) return;
    this.#settled = state;
    try {
      await read();
    } catch (error) {
      failed(error);
    }
  }
}

async function stateOfFile(file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(file);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "";
  }
}
