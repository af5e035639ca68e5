import { readFile, stat } from "node:fs/promises";
import type { Clock } from "../../core/clock.ts";
import { codeOf } from "../shared/network/connect-problem.ts";
import { DescriptorProblem, Services } from "./services.ts";

/** Most bytes of a descriptor file. */
const MAX_BYTES = 32 * 1024 * 1024;

/** How often a file is looked at, at most. */
const LOOK_MS = 1_000;

/** Descriptor files, each read once for all tools that name it, and again when it changed. */
export class DescriptorFiles {
  readonly #files = new Map<string, { readonly file: DescriptorFile; uses: number }>();

  /** Disposing the lease gives it back. */
  open(path: string, clock: Clock): { readonly file: DescriptorFile } & Disposable {
    const held = this.#files.get(path) ?? { file: new DescriptorFile(path, clock), uses: 0 };
    held.uses += 1;
    this.#files.set(path, held);
    return {
      file: held.file,
      [Symbol.dispose]: () => {
        held.uses -= 1;
        if (held.uses === 0) this.#files.delete(path);
      },
    };
  }
}

/** One of them. */
export class DescriptorFile {
  readonly #path: string;
  readonly #clock: Clock;
  #version = "";
  #content: Services | DescriptorProblem | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** What it holds now. @throws DescriptorProblem. */
  async services(): Promise<Services> {
    if (this.#content === undefined || this.#clock.monotonicMs() - this.#lookedMs >= LOOK_MS) {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
      await this.#looking;
    }
    if (this.#content instanceof Services) return this.#content;
    throw this.#content ?? new DescriptorProblem(`${this.#path} cannot be read`, "");
  }

  async #look(): Promise<void> {
    try {
      const { mtimeMs, size, ino } = await stat(this.#path);
      const version = `${mtimeMs} ${size} ${ino}`;
      if (version !== this.#version) {
        this.#content = await this.#read(size);
        this.#version = version;
      }
    } catch (cause) {
      const code = (cause instanceof Error ? codeOf(cause) : undefined) ?? "unknown problem";
      const why = code === "ENOENT" ? "there is no file" : `a file cannot be read (${code}):`;
      this.#version = "";
      this.#content = new DescriptorProblem(`${why} ${this.#path}`, "Correct `grpc.descriptor`, or make the file.");
    }
    this.#lookedMs = this.#clock.monotonicMs();
  }

  async #read(size: number): Promise<Services | DescriptorProblem> {
    if (size > MAX_BYTES) {
      const text = `${this.#path} has more than ${MAX_BYTES} bytes`;
      return new DescriptorProblem(text, "Leave files out of it that no service of the tools needs.");
    }
    try {
      return Services.parse(await readFile(this.#path));
    } catch (error) {
      if (!(error instanceof DescriptorProblem)) throw error;
      return new DescriptorProblem(`${this.#path} cannot be used: ${error.message}`, error.mend);
    }
  }
}
