import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import { raceSignal } from "../core/signal.ts";
import { type FileChange, type FileLook, FileTracker } from "./file-tracker.ts";
import { FolderEvents } from "./folder-events.ts";
import { type FolderScan, scanFolder } from "./folder-scan.ts";
import { ScheduledTask } from "./scheduled-task.ts";
import type { Pending } from "./settle-queue.ts";

/** Files handed on together. */
const BATCH = 128;
/** Where file events do the work, one part in so many of the time may go into polling. */
const POLL_SHARE = 20;
/** Events of folders come in bursts; one look serves them all. */
const SCAN_DELAY_MS = 50;

/** What a watched folder works with. */
export interface WatchedFolderDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Takes changes in; the folder waits for it before it reads on. Must not reject. */
  apply(changes: readonly FileChange[]): Promise<void>;
}

/**
 * Keeps up with the files of a folder that need not exist. What is true is what a look at the disk says; events only
 * say where to look soon, and polling looks everywhere, so lost events, file systems without them, and folders that go
 * and come cost time and nothing else.
 */
export class WatchedFolder implements AsyncDisposable {
  readonly #config: GatewayConfig["tools"];
  readonly #deps: WatchedFolderDeps;
  readonly #tracker: FileTracker;
  readonly #events: FolderEvents | undefined;
  readonly #scans: ScheduledTask;
  readonly #reads: ScheduledTask;
  #scan: Pick<FolderScan, "folders" | "faults"> = { folders: new Map(), faults: new Map() };
  #handingOn = false;
  #onLoaded: () => void = () => undefined;

  constructor(config: GatewayConfig["tools"], deps: WatchedFolderDeps) {
    const { clock, logger } = deps;
    this.#config = config;
    this.#deps = deps;
    this.#tracker = new FileTracker(config, clock);
    this.#scans = new ScheduledTask(clock, () => this.#guarded("folder-scan-failed", () => this.#lookEverywhere()));
    this.#reads = new ScheduledTask(clock, () => this.#guarded("folder-read-failed", () => this.#lookAtDue()));
    const onChange = (path: string | undefined): void => this.#hint(path);
    this.#events = config.poll === "auto" ? new FolderEvents(config.folder, logger, onChange) : undefined;
  }

  /** Begins to watch. Settles when every file that was there has been handed on. @throws the signal's reason. */
  load(signal: AbortSignal): Promise<void> {
    const loaded = new Promise<void>((resolve) => {
      this.#onLoaded = resolve;
    });
    this.#scans.within(0);
    return raceSignal(loaded, signal);
  }

  /** Hands every file on again soon, since what it means may be another. */
  readAgain(): void {
    this.#tracker.forgetContents();
    this.#scans.within(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#scans[Symbol.asyncDispose](), this.#reads[Symbol.asyncDispose]()]);
    this.#events?.[Symbol.dispose]();
  }

  /** A fault of ours must not end hot reload: it is logged and the folder looked at again. */
  async #guarded(message: string, task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (error) {
      this.#deps.logger.error(message, { folder: this.#config.folder, error });
      this.#scans.within(this.#config.pollIntervalMs);
    }
  }

  /** An event: something is another at a path, or somewhere. */
  #hint(path: string | undefined): void {
    // `..data` of a mounted ConfigMap stands for all files at once.
    if (path === undefined || path.split("/").some((part) => part.startsWith(".."))) this.#scans.within(SCAN_DELAY_MS);
    else this.#reads.within(this.#tracker.hint(path));
  }

  async #lookEverywhere(): Promise<void> {
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const scan = await scanFolder(this.#config.folder, { disk: this.#tracker.disk });
    const changes = faultChanges(this.#scan.faults, scan.faults);
    this.#scan = { folders: scan.folders, faults: scan.faults };
    await this.#tracker.noteScan(scan.files);
    if (changes.length > 0) await this.#deps.apply(changes);
    this.#reads.within(this.#tracker.nextInMs);
    this.#loadedOnceIdle();
    const isNew = this.#events?.sync(scan.folders) === true;
    const tookMs = clock.monotonicMs() - startMs;
    const restMs = this.#events === undefined ? tookMs : tookMs * POLL_SHARE;
    this.#scans.within(isNew ? this.#config.pollIntervalMs : Math.max(this.#config.pollIntervalMs, restMs));
  }

  async #lookAtDue(): Promise<void> {
    this.#handingOn = true;
    try {
      await this.#handOnDue();
    } finally {
      this.#handingOn = false;
    }
    this.#loadedOnceIdle();
    this.#reads.within(this.#tracker.nextInMs);
  }

  /** A look everywhere can come to its end while files that were read are still being handed on. */
  #loadedOnceIdle(): void {
    if (this.#tracker.loaded && !this.#handingOn) this.#onLoaded();
  }

  async #handOnDue(): Promise<void> {
    const due = this.#tracker.due();
    let look = this.#lookAtBatch(due, 0);
    for (let start = 0; start < due.length; start += BATCH) {
      const { changes } = await look;
      // The disk works on the next files while these are read.
      look = this.#lookAtBatch(due, start + BATCH);
      await Promise.all([changes.length > 0 ? this.#deps.apply(changes) : undefined, look]);
    }
  }

  async #lookAtBatch(due: readonly Pending[], start: number): Promise<FileLook> {
    const batch = due.slice(start, start + BATCH);
    const look = await this.#tracker.lookAt(batch);
    // A folder that has come or gone.
    if (batch.some(({ path }) => look.folders.includes(path) !== this.#scan.folders.has(path))) {
      this.#scans.within(SCAN_DELAY_MS);
    }
    return look;
  }
}

/** What has to be said about folders: faults that are new or others, and those that are mended. */
function faultChanges(before: FolderScan["faults"], after: FolderScan["faults"]): FileChange[] {
  const changes: FileChange[] = [];
  for (const [path, fault] of after) {
    if (before.get(path)?.message !== fault.message) changes.push({ kind: "fault", path: named(path), ...fault });
  }
  for (const path of before.keys()) if (!after.has(path)) changes.push({ kind: "gone", path: named(path) });
  return changes;
}

/** A folder's path as problems name it. */
function named(path: string): string {
  return path === "" ? "./" : `${path}/`;
}
