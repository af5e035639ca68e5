import { stat } from "node:fs/promises";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Logger } from "../core/logger.ts";
import { CliError } from "./cli-error.ts";

/** Time between two looks at the file. */
const LOOK_MS = 500;

/** What a watch of the settings works with. */
export interface SettingsWatchOptions {
  /** Absolute path of the file. */
  readonly path: string;
  readonly logger: Logger;
  /** Reads the settings. @throws CliError with all that is wrong with them. */
  read(): Promise<GatewayConfig>;
  /** Takes over what was read. */
  apply(config: GatewayConfig): Promise<void>;
}

/** Looks at a file of settings now and then, and at once when asked to. */
export class SettingsWatch implements AsyncDisposable {
  readonly #options: SettingsWatchOptions;
  readonly #timer: NodeJS.Timeout;
  /** What the file looked like when it was read, and at the last look. */
  #taken: string | undefined;
  #seen: string | undefined;
  #work: Promise<void> = Promise.resolve();

  private constructor(options: SettingsWatchOptions, stamp: string | undefined) {
    this.#options = options;
    this.#taken = stamp;
    this.#seen = stamp;
    this.#timer = setInterval(() => this.#then(() => this.#look()), LOOK_MS);
    this.#timer.unref();
  }

  /** Begins to watch a file that has just been read. */
  static async start(options: SettingsWatchOptions): Promise<SettingsWatch> {
    return new SettingsWatch(options, await stampOf(options.path));
  }

  /** Reads the file now, whether it looks changed or not. */
  reload(): void {
    this.#then(async () => {
      this.#seen = await stampOf(this.#options.path);
      await this.#take();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#work;
  }

  #then(task: () => Promise<void>): void {
    this.#work = this.#work.then(task);
  }

  /** A file that looks the same twice has been written to its end. One that is gone for a while is being replaced. */
  async #look(): Promise<void> {
    const stamp = await stampOf(this.#options.path);
    const isStill = stamp === this.#seen;
    this.#seen = stamp;
    if (stamp !== undefined && isStill && stamp !== this.#taken) await this.#take();
  }

  async #take(): Promise<void> {
    const { logger, path, read, apply } = this.#options;
    this.#taken = this.#seen;
    try {
      await apply(await read());
    } catch (error) {
      if (!(error instanceof CliError)) {
        logger.error("settings-reload-failed", { file: path, error });
        return;
      }
      const problems = error.places.length === 0 ? [error.message] : error.places;
      for (const problem of problems) logger.error("settings rejected", { file: path, problem });
    }
  }
}

/** Whether a file is another one than before, without reading it. Follows links, as Kubernetes mounts ConfigMaps. */
async function stampOf(path: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(path);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch {
    // Nothing to read is nothing to take over: what is in force stays.
    return undefined;
  }
}
