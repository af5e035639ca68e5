import type { Dirent } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { mapConcurrently } from "./concurrent.ts";
import { type Disk, pooledDisk } from "./disk.ts";
import { isHidden } from "./file-rules.ts";
import { errorCode, type FileStat, fileStat, isMissing, unreadable } from "./file-stat.ts";

/** Files looked at in one folder at a time; more only fill the thread pool's queue. */
const CONCURRENCY = 16;
const MAX_DEPTH = 8;
const DEFAULT_MAX_ENTRIES = 50_000;

/** Something that cannot be looked at. */
export interface FolderFault {
  readonly message: string;
  /** Nothing is broken by it. */
  readonly note: boolean;
}

/** What is in a folder. Paths are relative to it, with `/` between their parts; `` is the folder itself. */
export interface FolderScan {
  /** Everything that is not a folder, but for hidden and temporary files. */
  readonly files: ReadonlyMap<string, FileStat>;
  /** Folders that were read, by identity. */
  readonly folders: ReadonlyMap<string, string>;
  readonly faults: ReadonlyMap<string, FolderFault>;
}

/** How a folder is scanned. */
export interface ScanOptions {
  readonly disk?: Disk;
  readonly maxEntries?: number;
}

/**
 * Lists a folder with all below it. Symbolic links to files are followed; those to folders as far as these lie inside
 * the folder, each folder once. At most 8 levels deep and 50,000 entries (`maxEntries`). Never rejects.
 */
export async function scanFolder(
  folder: string,
  { disk = pooledDisk, maxEntries = DEFAULT_MAX_ENTRIES }: ScanOptions = {},
): Promise<FolderScan> {
  const walk = new Walk(folder, disk, maxEntries);
  await walk.run();
  return walk;
}

class Walk implements FolderScan {
  readonly files = new Map<string, FileStat>();
  readonly folders = new Map<string, string>();
  readonly faults = new Map<string, FolderFault>();
  readonly #root: string;
  readonly #disk: Disk;
  readonly #maxEntries: number;
  /** Identities of folders that were read. */
  readonly #visited = new Set<string>();
  /** Links to folders wait until all real folders were read, so that a file goes by its real path. */
  readonly #links: string[] = [];
  #entries = 0;

  constructor(root: string, disk: Disk, maxEntries: number) {
    this.#root = root;
    this.#disk = disk;
    this.#maxEntries = maxEntries;
  }

  async run(): Promise<void> {
    await this.#folder("", 0);
    for (let link = this.#links.shift(); link !== undefined; link = this.#links.shift()) await this.#link(link);
  }

  async #folder(path: string, depth: number): Promise<void> {
    const absolute = join(this.#root, path);
    let entries: Dirent[];
    try {
      const { identity } = fileStat(await this.#disk.stat(absolute));
      if (this.#visited.has(identity)) return;
      this.#visited.add(identity);
      entries = await readdir(absolute, { withFileTypes: true });
      this.folders.set(path, identity);
    } catch (error) {
      this.#fault(path, errorCode(error));
      return;
    }
    const seen = entries.filter((entry) => !isHidden(entry.name));
    this.#entries += seen.length;
    if (this.#entries > this.#maxEntries) {
      const message = `holds more than ${this.#maxEntries} files, not all are read: keep only declarations in it`;
      this.faults.set("", { message, note: false });
      return;
    }
    await this.#contents(path, seen, depth);
  }

  async #contents(path: string, entries: readonly Dirent[], depth: number): Promise<void> {
    const folders: string[] = [];
    await mapConcurrently(entries, CONCURRENCY, async (entry) => {
      const child = path === "" ? entry.name : `${path}/${entry.name}`;
      const found = entry.isDirectory() ? "folder" : await this.#file(child);
      if (found === "folder") (entry.isDirectory() ? folders : this.#links).push(child);
    });
    for (const child of folders.toSorted()) {
      if (depth < MAX_DEPTH) await this.#folder(child, depth + 1);
      else this.faults.set(child, { message: `is nested deeper than ${MAX_DEPTH} levels and not read`, note: false });
    }
  }

  async #file(path: string): Promise<"file" | "folder" | "missing"> {
    try {
      const stats = await this.#disk.stat(join(this.#root, path));
      if (stats.isDirectory()) return "folder";
      this.files.set(path, fileStat(stats));
      return "file";
    } catch (error) {
      const code = errorCode(error);
      if (isMissing(code)) return "missing";
      // It is there; whoever reads it will find out what is wrong.
      this.files.set(path, { stamp: code, identity: code, mtimeMs: 0, size: 0 });
      return "file";
    }
  }

  async #link(path: string): Promise<void> {
    try {
      const [root, target] = await Promise.all([realpath(this.#root), realpath(join(this.#root, path))]);
      if (target === root || target.startsWith(root + sep)) {
        await this.#folder(path, path.split("/").length);
        return;
      }
      const message = "ignored: a link to a folder outside the tools folder is not followed; link its files one by one";
      this.faults.set(path, { message, note: true });
    } catch (error) {
      if (!isMissing(errorCode(error))) this.#fault(path, errorCode(error));
    }
  }

  #fault(path: string, code: string): void {
    if (path === "" && code === "ENOENT") {
      const message = `the tools folder ${this.#root} does not exist: create it, or set tools.folder`;
      this.faults.set(path, { message, note: false });
    } else if (path === "" && code === "ENOTDIR") {
      this.faults.set(path, { message: `${this.#root} is no folder: set tools.folder to a folder`, note: false });
    } else if (path === "" || !isMissing(code)) {
      this.faults.set(path, { message: unreadable(code), note: false });
    }
  }
}
