import type { FileHandle } from "node:fs/promises";
import type { Logger } from "../core/logger.ts";
import { handleOf, type KeepOutcome, type ResultWriter } from "../core/results.ts";
import { CHUNK_BYTES, type ChunkCipher } from "./result-cipher.ts";

/** What a writer does its work with. */
export interface FileWriterParts {
  readonly id: string;
  readonly logger: Logger;
  /** Called once, at the first chunk. */
  open(): Promise<{ readonly file: FileHandle; readonly cipher: ChunkCipher }>;
  /** Whether there is room for so many bytes more. */
  take(bytes: number): Promise<boolean>;
  giveBack(bytes: number): void;
  /** Removes the file; never rejects. */
  remove(): Promise<void>;
  /** Puts the result on record. */
  finish(bytes: number, complete: boolean): Promise<KeepOutcome>;
}

const DISK_REFUSES = "the gateway cannot write it to its disk";
const NO_ROOM = "there is no room for it";

/** Writes one result, chunk by chunk; holds no more than one chunk. */
export class FileWriter implements ResultWriter {
  readonly handle: string;
  readonly #parts: FileWriterParts;
  readonly #chunk = Buffer.alloc(CHUNK_BYTES);
  #filled = 0;
  #chunks = 0;
  #writtenBytes = 0;
  #opened: Promise<{ readonly file: FileHandle; readonly cipher: ChunkCipher }> | undefined;
  #failed = false;
  #full = false;
  #finished = false;

  constructor(parts: FileWriterParts) {
    this.#parts = parts;
    this.handle = handleOf(parts.id);
  }

  async write(bytes: Uint8Array): Promise<boolean> {
    for (let at = 0; at < bytes.byteLength && this.#goesOn; ) {
      const piece = bytes.subarray(at, at + CHUNK_BYTES - this.#filled);
      this.#chunk.set(piece, this.#filled);
      this.#filled += piece.byteLength;
      at += piece.byteLength;
      if (this.#filled === CHUNK_BYTES) await this.#flush();
    }
    return this.#goesOn;
  }

  async finish(complete: boolean): Promise<KeepOutcome> {
    if (this.#goesOn) await this.#flush();
    if (this.#failed || (this.#full && this.#writtenBytes === 0)) return this.#given(this.#failed);
    try {
      await this.#close();
      const outcome = await this.#parts.finish(this.#writtenBytes, complete && !this.#full);
      this.#finished = true;
      return outcome;
    } catch (error) {
      this.#fail(error);
      return this.#given(true);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#finished) return;
    this.#finished = true;
    this.#parts.giveBack(this.#writtenBytes);
    await this.#close().catch(() => undefined);
    await this.#parts.remove();
  }

  get #goesOn(): boolean {
    return !this.#failed && !this.#full;
  }

  async #flush(): Promise<void> {
    const bytes = this.#filled;
    if (bytes === 0 && this.#opened !== undefined) return;
    if (!(await this.#parts.take(bytes))) {
      this.#full = true;
      return;
    }
    // Whatever happens next, they are given back with the rest.
    this.#writtenBytes += bytes;
    this.#filled = 0;
    try {
      this.#opened ??= this.#parts.open();
      const { file, cipher } = await this.#opened;
      const sealed = cipher.seal(this.#chunks, this.#chunk.subarray(0, bytes));
      await file.writeFile(sealed);
      this.#chunks += 1;
    } catch (error) {
      this.#fail(error);
    }
  }

  async #given(failed: boolean): Promise<KeepOutcome> {
    await this[Symbol.asyncDispose]();
    return { ok: false, problem: failed ? DISK_REFUSES : NO_ROOM };
  }

  async #close(): Promise<void> {
    const opened = await this.#opened;
    await opened?.file.close();
  }

  #fail(error: unknown): void {
    if (!this.#failed) this.#parts.logger.warn("result-not-kept", { error });
    this.#failed = true;
  }
}
