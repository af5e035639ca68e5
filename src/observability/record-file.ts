import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { closedRecordName, closedRecordNames, type RecordLog, recordFileName } from "../core/record-files.ts";

/** Lines of so long a time are written at once: what a crash of the gateway can cost. */
const GATHER_MS = 50;
/** Time between two tries while a file cannot be written. */
const RETRY_MS = 1_000;
/** Most that waits to be written, in UTF-16 units; more is lost, and counted. */
const MAX_WAITING = 4 * 1_024 * 1_024;
/** Most that is written at once. */
const MAX_BATCH = 256 * 1_024;
/** Longest time between two looks for files that are too old. */
const TIDY_MS = 3_600_000;

/** Bounds of a log's files. */
export interface RecordFileLimits {
  readonly fileBytes: number;
  readonly fileAgeMs: number;
  readonly retentionMs: number;
  readonly maxFiles: number;
  readonly maxBytes: number;
}

/** What a log is made with. */
export interface RecordFileOptions {
  readonly folder: string;
  readonly log: RecordLog;
  readonly limits: RecordFileLimits;
  readonly clock: Clock;
  /** Has its turn at the disk: one task of all logs at a time, so that a disk that hangs holds one thread. */
  readonly turn: <T>(task: () => Promise<T>) => Promise<T>;
  /** From now on nothing can be written. */
  onTrouble(error: unknown): void;
  /** It can be written again; so many lines were lost meanwhile. */
  onRecovered(lost: number): void;
}

interface OpenFile {
  readonly handle: FileHandle;
  size: number;
  readonly sinceMs: number;
}

interface Batch {
  readonly bytes: Buffer;
  readonly lines: number;
  /** How much of it is in the file. */
  written: number;
}

/**
 * A log of lines in files of bounded size, age, number and bytes. Lines are taken without waiting, and written by
 * and by. While they cannot be written they wait; what no longer fits is lost and counted, and a line says so where it
 * would stand.
 */
export class RecordFile implements AsyncDisposable {
  readonly #options: RecordFileOptions;
  #waiting: string[] = [];
  #waitingLength = 0;
  #batch: Batch | undefined;
  #timer: Disposable | undefined;
  readonly #tidying: { timer?: Disposable } = {};
  #work: Promise<void> | undefined;
  #file: OpenFile | undefined;
  #failing = false;
  #closed = false;
  #lost = 0;
  /** Of the lost, those that no line tells of yet, and since when. */
  #untold: { lines: number; readonly sinceMs: number } | undefined;

  constructor(options: RecordFileOptions) {
    this.#options = options;
  }

  /** Lines lost so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Whether the last try to write failed. */
  get failing(): boolean {
    return this.#failing;
  }

  /** Takes a line, its line break included. */
  write(line: string): void {
    if (this.#closed || this.#waitingLength + line.length > MAX_WAITING) {
      this.#lose(1);
      return;
    }
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    this.#later(GATHER_MS);
  }

  /** Writes what waits, and closes the file. What cannot be written now is lost. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#tidying.timer?.[Symbol.dispose]();
    await this.#work;
    await this.#drain();
    this.#lose((this.#batch?.lines ?? 0) + this.#waiting.length);
    await this.#file?.handle.close().catch(() => undefined);
    this.#file = undefined;
  }

  #lose(lines: number): void {
    if (lines === 0) return;
    this.#lost += lines;
    this.#untold ??= { lines: 0, sinceMs: this.#options.clock.now() };
    this.#untold.lines += lines;
  }

  #later(ms: number): void {
    if (this.#closed || this.#work !== undefined) return;
    this.#timer ??= this.#options.clock.after(this.#failing ? RETRY_MS : ms, () => {
      this.#timer = undefined;
      this.#work = this.#drain().finally(() => {
        this.#work = undefined;
        if (this.#batch !== undefined || this.#waiting.length > 0) this.#later(0);
      });
    });
  }

  /** Writes until nothing waits, or it cannot be written. Never rejects. */
  async #drain(): Promise<void> {
    while (true) {
      this.#batch ??= this.#take();
      const batch = this.#batch;
      if (batch === undefined) return;
      try {
        await this.#options.turn(() => this.#put(batch));
      } catch (error) {
        await this.#broken(error);
        return;
      }
      this.#batch = undefined;
      this.#recovered();
    }
  }

  /** The next lines to be written, as bytes. */
  #take(): Batch | undefined {
    const lines: string[] = [];
    let length = 0;
    const most = Math.min(MAX_BATCH, this.#options.limits.fileBytes / 4);
    while (length < most && lines.length < this.#waiting.length) {
      const line = this.#waiting[lines.length] ?? "";
      length += line.length;
      lines.push(line);
    }
    if (lines.length === 0) return undefined;
    this.#waiting = this.#waiting.slice(lines.length);
    this.#waitingLength -= length;
    return { bytes: Buffer.from(lines.join("")), lines: lines.length, written: 0 };
  }

  async #put(batch: Batch): Promise<void> {
    // A line stands in one file, so a batch that has begun is not torn.
    if (batch.written === 0) await this.#closeIfDue(batch.bytes.length);
    const file = (this.#file ??= await this.#open());
    while (batch.written < batch.bytes.length) {
      const { bytesWritten } = await file.handle.write(batch.bytes, batch.written);
      batch.written += bytesWritten;
      file.size += bytesWritten;
    }
  }

  async #open(): Promise<OpenFile> {
    const { folder, log, clock } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // Who calls what is nobody's business but the gateway's.
    const handle = await open(join(folder, recordFileName(log)), "a+", 0o600);
    try {
      const { size, birthtimeMs } = await handle.stat();
      const last = size === 0 ? undefined : await handle.read(Buffer.alloc(1), 0, 1, size - 1);
      // What a crash left half written stays a line of its own.
      if (last !== undefined && last.buffer[0] !== 0x0a) await handle.write("\n");
      await this.#prune();
      if (this.#tidying.timer === undefined && !this.#closed) this.#tidyLater();
      return { handle, size, sinceMs: size === 0 || birthtimeMs === 0 ? clock.now() : birthtimeMs };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Closes the file where it is full or old, or no longer where it was opened. */
  async #closeIfDue(moreBytes: number): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    const { limits, clock, folder, log } = this.#options;
    const isGone = (await file.handle.stat()).nlink === 0;
    const isFull = file.size > 0 && file.size + moreBytes > limits.fileBytes;
    const isOld = file.size > 0 && clock.now() - file.sinceMs >= limits.fileAgeMs;
    if (!isGone && !isFull && !isOld) return;
    this.#file = undefined;
    await file.handle.close();
    if (isGone) return;
    const taken = new Set(await readdir(folder));
    let nth = 0;
    while (taken.has(closedRecordName(log, clock.now(), nth))) nth++;
    await rename(join(folder, recordFileName(log)), join(folder, closedRecordName(log, clock.now(), nth)));
  }

  /** Removes closed files that are too old, too many, or too much. */
  async #prune(): Promise<void> {
    const { folder, log, limits, clock } = this.#options;
    const names = closedRecordNames(log, await readdir(folder)).toReversed();
    // The file that is written may grow to its bound.
    let left = Math.max(0, limits.maxBytes - limits.fileBytes);
    for (const [newer, name] of names.entries()) {
      const path = join(folder, name);
      const facts = await stat(path);
      left -= facts.size;
      const isOld = clock.now() - facts.mtimeMs > limits.retentionMs;
      if (newer >= limits.maxFiles || left < 0 || isOld) await rm(path, { force: true });
    }
  }

  /** Files grow old where nothing is written, too. */
  #tidyLater(): void {
    const { limits, clock, turn } = this.#options;
    this.#tidying.timer = clock.after(Math.min(TIDY_MS, limits.fileAgeMs, limits.retentionMs), () => {
      void turn(() => this.#tidy());
      this.#tidyLater();
    });
  }

  async #tidy(): Promise<void> {
    try {
      if (this.#batch === undefined) await this.#closeIfDue(0);
      await this.#prune();
    } catch (error) {
      // A folder that is not there yet has nothing to tidy; other trouble the next line that is written meets, too.
      if (this.#file !== undefined) await this.#broken(error);
    }
  }

  /** What is in the file stays there; the next try opens it anew, since a disk may have been mounted again. */
  async #broken(trouble: unknown): Promise<void> {
    if (!this.#failing) this.#options.onTrouble(trouble);
    this.#failing = true;
    const file = this.#file;
    if (this.#batch !== undefined && this.#batch.written > 0) return;
    this.#file = undefined;
    await file?.handle.close().catch(() => undefined);
  }

  #recovered(): void {
    const { clock, onRecovered } = this.#options;
    const untold = this.#untold;
    if (untold !== undefined) {
      this.#untold = undefined;
      const [since, time] = [untold.sinceMs, clock.now()].map((ms) => new Date(ms).toISOString());
      const words = { level: "warn", time, lost: untold.lines, since, message: "records-lost" };
      const line = `${JSON.stringify(words)}\n`;
      this.#waiting.unshift(line);
      this.#waitingLength += line.length;
    }
    if (this.#failing) onRecovered(untold?.lines ?? 0);
    this.#failing = false;
  }
}
