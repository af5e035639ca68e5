import { hash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { mapConcurrently } from "./concurrent.ts";
import { type FileReading, readDeclarationFile } from "./declaration-file.ts";
import { MAX_DECLARATION_BYTES } from "./declaration-source.ts";
import { createDirectDisk, type Disk, pooledDisk } from "./disk.ts";
import { createFileRules, type FileVerdict } from "./file-rules.ts";
import { errorCode, type FileStat, isMissing, unreadable } from "./file-stat.ts";
import type { FolderScan } from "./folder-scan.ts";
import { Pacer } from "./pacer.ts";
import { type Pending, SettleQueue } from "./settle-queue.ts";

const READ_CONCURRENCY = 16;
/** How long a file whose last line has no end must be left alone: it is more often half written than another. */
const UNENDED_SETTLE_MS = 700;
/** How long a file must be gone before that is believed: a save that deletes first must not show. */
const GONE_SETTLE_MS = 500;
/** The same where the whole folder is gone: it may be on its way back. */
const FOLDER_GONE_SETTLE_MS = 2_000;

/** What has become of a file. Paths are relative to the folder, with `/` between their parts. */
export type FileChange =
  /** Its text is another; `sinceMs` is when that was noticed, in monotonic milliseconds. */
  | { readonly kind: "text"; readonly path: string; readonly text: string; readonly sinceMs: number }
  /** It cannot be used; a note breaks nothing. */
  | { readonly kind: "fault"; readonly path: string; readonly message: string; readonly note: boolean }
  | { readonly kind: "gone"; readonly path: string };

/** What a look at files has found. */
export interface FileLook {
  readonly changes: readonly FileChange[];
  /** Paths at which there are folders. */
  readonly folders: readonly string[];
}

/** A file as it was when it was last handed on. */
interface KnownFile {
  readonly stamp: string | undefined;
  readonly identity: string | undefined;
  /** Of the content; absent after a fault. */
  readonly digest: string | undefined;
  readonly fault: string | undefined;
}

/** Rules for the files of a folder. */
export interface FileTrackerOptions {
  /** Absolute path. */
  readonly folder: string;
  readonly include: readonly string[];
  readonly settleMs: number;
}

/** Knows each file as it was last handed on, and finds out what became of those that may have changed. */
export class FileTracker {
  readonly #options: FileTrackerOptions;
  readonly #clock: Clock;
  readonly #verdictOf: (path: string) => FileVerdict;
  readonly #queue: SettleQueue;
  readonly #startDisk: Disk;
  readonly #known = new Map<string, KnownFile>();
  /** Known files that were not there at the last look, but whose going is not believed yet. */
  readonly #missing = new Set<string>();
  /** Files of the first scan that were not looked at yet; absent before it. */
  #initial: Set<string> | undefined;

  constructor(options: FileTrackerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#verdictOf = createFileRules(options.include);
    this.#queue = new SettleQueue(clock, options.settleMs);
    this.#startDisk = createDirectDisk(clock);
  }

  /** Whether every file of the first scan has been handed on. */
  get loaded(): boolean {
    return this.#initial?.size === 0;
  }

  /** How to ask for the folder's files. */
  get disk(): Disk {
    return this.loaded ? pooledDisk : this.#startDisk;
  }

  /** How long until a file is due to be looked at; infinite where none is. */
  get nextInMs(): number {
    return this.#queue.nextInMs;
  }

  /** Notes that something happened at a path. Returns how long until it is due to be looked at. */
  hint(path: string): number {
    return this.#verdictOf(path) === "silent" ? Number.POSITIVE_INFINITY : this.#queue.note(path);
  }

  /** Counts every file as another at the next scan, whatever it holds: its text will be handed on again. */
  forgetContents(): void {
    for (const [path, { identity }] of this.#known) {
      this.#known.set(path, { stamp: undefined, identity, digest: undefined, fault: undefined });
    }
  }

  /** Notes where a scan differs from what is known. */
  async noteScan(files: FolderScan["files"]): Promise<void> {
    const first = this.#initial === undefined;
    const pacer = new Pacer(this.#clock);
    this.#initial ??= new Set(files.keys());
    for (const [path, found] of files) {
      await pacer.turn();
      if (this.#known.get(path)?.stamp === found.stamp) continue;
      // At the start a file that has been left alone is read at once; later that would trust the file system's clock.
      const ageMs = first ? Math.max(0, this.#clock.now() - found.mtimeMs) : 0;
      this.#queue.note(path, found.stamp, ageMs);
    }
    for (const path of this.#known.keys()) if (!files.has(path)) this.#queue.note(path);
  }

  /** Files that are due, in code-unit order of path; they are to be given to {@link lookAt} by and by. */
  due(): readonly Pending[] {
    return this.#queue.due();
  }

  /** Looks at files: what became of them. Those that are as before, or to be looked at again later, give nothing. */
  async lookAt(due: readonly Pending[]): Promise<FileLook> {
    const changes: FileChange[] = [];
    const folders: string[] = [];
    const taken = due.filter((pending) => this.#queue.take(pending));
    const looks = await mapConcurrently(taken, READ_CONCURRENCY, async (pending) => {
      const isNew = !this.#known.has(pending.path);
      return { path: pending.path, isNew, change: await this.#look(pending) };
    });
    for (const { path, isNew, change } of looks) {
      if (change === "folder") folders.push(path);
      else if (change !== undefined) {
        if (isNew && change.kind === "text") changes.push(...this.#formerName(path));
        changes.push(change);
      }
    }
    return { changes, folders };
  }

  async #look(pending: Pending): Promise<FileChange | "folder" | undefined> {
    const { path } = pending;
    const verdict = this.#verdictOf(path);
    const known = this.#known.get(path);
    let settled = true;
    const reading = await readDeclarationFile(join(this.#options.folder, path), this.disk, (found) => {
      if (verdict !== "read" || known?.stamp === found.stamp) return false;
      settled = this.#isSettled(pending, found);
      return settled;
    });
    if (reading.kind === "missing" && known !== undefined) return this.#whenMissing(pending);
    pending.missingSinceMs = undefined;
    this.#missing.delete(path);
    if (!settled || (reading.kind === "bytes" && this.#isHalf(pending, reading))) return undefined;
    this.#initial?.delete(path);
    if (reading.kind === "folder") return this.#known.delete(path) ? { kind: "gone", path } : "folder";
    return reading.kind === "missing" ? undefined : this.#changeOf(pending, reading, verdict);
  }

  /** Whether a file has been left alone long enough; otherwise it is put back. */
  #isSettled(pending: Pending, found: FileStat): boolean {
    if (this.#queue.isHeldTooLong(pending) || pending.stamp === found.stamp) return true;
    const { settleMs } = this.#options;
    if (pending.stamp === undefined && this.#clock.now() - found.mtimeMs >= settleMs) return true;
    this.#changedAgain(pending, found);
    return false;
  }

  /** Whether a file looks as if more were to come; then it is put back. */
  #isHalf(pending: Pending, { stat: found, bytes, whole }: FileReading & { readonly kind: "bytes" }): boolean {
    if (this.#queue.isHeldTooLong(pending)) return false;
    if (!whole) {
      this.#changedAgain(pending, found);
      return true;
    }
    const dueMs = pending.changedMs + UNENDED_SETTLE_MS;
    if (isEnded(bytes) || dueMs <= this.#clock.monotonicMs()) return false;
    pending.stamp = found.stamp;
    this.#queue.putBack(pending, dueMs);
    return true;
  }

  #changedAgain(pending: Pending, found: FileStat): void {
    pending.stamp = found.stamp;
    pending.changedMs = this.#clock.monotonicMs();
    this.#queue.putBack(pending, pending.changedMs + this.#options.settleMs);
  }

  /** A known file that is not there: gone once that has lasted. */
  async #whenMissing(pending: Pending): Promise<FileChange | undefined> {
    const holdMs = (await exists(this.#options.folder)) ? GONE_SETTLE_MS : FOLDER_GONE_SETTLE_MS;
    pending.missingSinceMs ??= this.#clock.monotonicMs();
    const dueMs = pending.missingSinceMs + Math.max(holdMs, this.#options.settleMs);
    if (this.#clock.monotonicMs() < dueMs) {
      this.#missing.add(pending.path);
      this.#queue.putBack(pending, dueMs);
      return undefined;
    }
    this.#forget(pending.path);
    return { kind: "gone", path: pending.path };
  }

  /** Remembers a file as it is now; `undefined` where that is nothing new to whom it is handed on. */
  #changeOf(pending: Pending, reading: FileReading, verdict: FileVerdict): FileChange | undefined {
    const { path, firstMs } = pending;
    const known = this.#known.get(path);
    const found = "stat" in reading ? reading.stat : undefined;
    // Without a stamp each scan looks again: what the system refuses today it may allow tomorrow.
    const state = { stamp: found?.stamp, identity: found?.identity };
    const fault = faultOf(reading, verdict);
    if (fault !== undefined) {
      this.#known.set(path, { ...state, digest: undefined, fault: fault.message });
      return known?.fault === fault.message ? undefined : { kind: "fault", path, ...fault };
    }
    if (reading.kind !== "bytes") return undefined;
    const digest = hash("sha256", reading.bytes, "base64");
    this.#known.set(path, { ...state, digest, fault: undefined });
    if (known?.digest === digest) return undefined;
    const text = decode(reading.bytes);
    if (text !== undefined) return { kind: "text", path, text, sinceMs: firstMs };
    return { kind: "fault", path, message: "is no UTF-8 text: save it as UTF-8", note: false };
  }

  /** The file that a new one was renamed from: it goes at the same moment, or both would claim one name for a while. */
  #formerName(path: string): readonly FileChange[] {
    const identity = this.#known.get(path)?.identity;
    for (const other of this.#missing) {
      if (this.#known.get(other)?.identity !== identity) continue;
      this.#queue.delete(other);
      this.#forget(other);
      return [{ kind: "gone", path: other }];
    }
    return [];
  }

  #forget(path: string): void {
    this.#known.delete(path);
    this.#missing.delete(path);
  }
}

/** Why a file cannot be used at all. */
function faultOf(
  reading: FileReading,
  verdict: FileVerdict,
): { readonly message: string; readonly note: boolean } | undefined {
  if (typeof verdict === "object") return { message: verdict.note, note: true };
  switch (reading.kind) {
    case "failed":
      return { message: unreadable(reading.code), note: false };
    case "special":
      return { message: "ignored: it is no regular file", note: true };
    case "too-large": {
      const message = `has ${reading.stat.size} bytes, at most ${MAX_DECLARATION_BYTES} are allowed: shorten it`;
      return { message, note: false };
    }
    default:
      return undefined;
  }
}

/** Whether the last line has an end, or all stands in one pair of braces. */
function isEnded(bytes: Uint8Array): boolean {
  return bytes.at(-1) === 0x0a || (bytes.at(0) === 0x7b && bytes.at(-1) === 0x7d);
}

/** Text without a byte order mark; `undefined` for what is no UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Whether there is something at a path, readable or not. */
async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    return !isMissing(errorCode(error));
  }
}
