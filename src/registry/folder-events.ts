import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../core/logger.ts";
import { errorCode } from "./file-stat.ts";

/** Most folders that are watched by events; those beyond are polled only. */
const MAX_WATCHERS = 1_000;

interface FolderWatcher {
  readonly identity: string;
  readonly watcher: FSWatcher;
}

/**
 * File events of a folder and those below it, one system watch each. An event is a hint where to look and nothing more:
 * polling finds what events miss. (chokidar lists a whole folder again for every file that comes: 250 to 500 ms of CPU
 * with 10,000 files, where the system's own event names the file.)
 */
export class FolderEvents implements Disposable {
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #onChange: (path: string | undefined) => void;
  readonly #watchers = new Map<string, FolderWatcher>();
  #complained = false;

  /** @param onChange gets the path of what changed, relative to the folder; `undefined` where the system does not say. */
  constructor(folder: string, logger: Logger, onChange: (path: string | undefined) => void) {
    this.#folder = folder;
    this.#logger = logger;
    this.#onChange = onChange;
  }

  /**
   * Watches these folders (path → identity) and no others. Returns whether one of them was not watched before: what
   * changed in it until now has given no event.
   */
  sync(folders: ReadonlyMap<string, string>): boolean {
    for (const [path, { identity }] of this.#watchers) if (folders.get(path) !== identity) this.#close(path);
    let added = false;
    for (const [path, identity] of folders) {
      if (this.#watchers.has(path) || this.#watchers.size >= MAX_WATCHERS) continue;
      added = this.#open(path, identity) || added;
    }
    return added;
  }

  [Symbol.dispose](): void {
    for (const path of this.#watchers.keys()) this.#close(path);
  }

  #open(path: string, identity: string): boolean {
    try {
      const watcher = watch(join(this.#folder, path));
      watcher.on("change", (_kind, name) => {
        this.#onChange(typeof name !== "string" ? undefined : path === "" ? name : `${path}/${name}`);
      });
      watcher.on("error", (error) => {
        this.#complain(error);
        this.#close(path);
      });
      this.#watchers.set(path, { identity, watcher });
      return true;
    } catch (error) {
      this.#complain(error);
      return false;
    }
  }

  #close(path: string): void {
    this.#watchers.get(path)?.watcher.close();
    this.#watchers.delete(path);
  }

  #complain(error: unknown): void {
    if (this.#complained) return;
    this.#complained = true;
    this.#logger.warn("file-events-unavailable", { folder: this.#folder, code: errorCode(error), instead: "polling" });
  }
}
