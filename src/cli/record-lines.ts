import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { sleep, systemClock } from "../core/clock.ts";
import { closedRecordNames, type RecordLog, recordFileName } from "../core/record-files.ts";

/** Time between two looks for more. */
const LOOK_MS = 250;
/** Bytes that are read at once. */
const READ_BYTES = 256 * 1_024;

/**
 * The lines of a log, oldest first: those of its closed files, then those of the one that is written. `undefined` stands
 * where there is no more for now; without `follow` that is the end.
 *
 * @throws the signal's reason, and what the file system throws.
 */
export async function* recordLines(
  folder: string,
  log: RecordLog,
  { follow, signal }: { readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<string | undefined, void, undefined> {
  const path = join(folder, recordFileName(log));
  // Opened first: should it be closed meanwhile, it is known by its number.
  let reader = await LineReader.at(path);
  try {
    yield* closedLines(folder, log, reader, signal);
    while (true) {
      if (reader !== undefined) yield* reader.rest();
      yield undefined;
      if (!follow) return;
      await sleep(systemClock, LOOK_MS, signal);
      if (reader !== undefined) {
        if (await reader.isStill(path)) continue;
        // What was written until it was closed.
        yield* reader.rest();
        await reader.close();
      }
      reader = await LineReader.at(path);
    }
  } finally {
    await reader?.close();
  }
}

async function* closedLines(
  folder: string,
  log: RecordLog,
  current: LineReader | undefined,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  for (const name of closedRecordNames(log, await namesIn(folder))) {
    signal.throwIfAborted();
    const path = join(folder, name);
    if ((await current?.isAt(path)) === true) continue;
    const closed = await LineReader.at(path);
    if (closed === undefined) continue;
    try {
      yield* closed.rest();
    } finally {
      await closed.close();
    }
  }
}

class LineReader {
  readonly #file: FileHandle;
  #position = 0;
  #pieces: Buffer[] = [];

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Of the file there; `undefined`: there is none. */
  static async at(path: string): Promise<LineReader | undefined> {
    const file = await absentAsUndefined(open(path, "r"));
    return file === undefined ? undefined : new LineReader(file);
  }

  /** Whether this is the file of that path. */
  async isAt(path: string): Promise<boolean> {
    return (await absentAsUndefined(stat(path)))?.ino === (await this.#file.stat()).ino;
  }

  /** Whether no other file has taken its place. */
  async isStill(path: string): Promise<boolean> {
    return (await absentAsUndefined(stat(path))) === undefined || (await this.isAt(path));
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** The whole lines from where the last call ended. */
  async *rest(): AsyncGenerator<string, void, undefined> {
    const buffer = Buffer.alloc(READ_BYTES);
    while (true) {
      const { bytesRead } = await this.#file.read(buffer, 0, READ_BYTES, this.#position);
      if (bytesRead === 0) return;
      this.#position += bytesRead;
      let from = 0;
      const read = Buffer.from(buffer.subarray(0, bytesRead));
      for (let end = read.indexOf(10); end !== -1; end = read.indexOf(10, from)) {
        this.#pieces.push(read.subarray(from, end));
        yield Buffer.concat(this.#pieces).toString();
        this.#pieces = [];
        from = end + 1;
      }
      if (from < bytesRead) this.#pieces.push(read.subarray(from));
    }
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await absentAsUndefined(readdir(folder))) ?? [];
}

async function absentAsUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
