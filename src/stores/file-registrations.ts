import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import type { RegistrationStore, StoredRegistration } from "../core/store.ts";
import { decodeRegistration, encodeRegistration } from "./registration-codec.ts";

const PREFIX = "tool-";
const SUFFIX = ".json";
/** File systems take 255 bytes; a longer name is cut and gets a hash. */
const MAX_ENCODED_NAME = 180;
const TEMPORARY = /^\.tool-.*\.tmp$/;
const READ_CONCURRENCY = 16;

/**
 * Keeps each registration in a JSON file of its own. A file is written beside its place, made durable, and renamed
 * into it, so it is whole or absent after a crash at any moment. The folder is made when it is first needed, readable
 * by its owner alone. One process at a time may use it.
 *
 * @param folder absolute path.
 */
export function createFileRegistrations(folder: string): RegistrationStore {
  return new FileRegistrations(folder);
}

class FileRegistrations implements RegistrationStore {
  readonly #folder: string;
  readonly #running = new Set<Promise<unknown>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  load(onDamaged: (entry: string, problem: string) => void): Promise<readonly StoredRegistration[]> {
    return this.#run("cannot be read", async () => {
      const names = await this.#list();
      await Promise.all(
        names.filter((name) => TEMPORARY.test(name)).map((name) => rm(this.#path(name), { force: true })),
      );
      const files = names.filter((name) => name.startsWith(PREFIX) && name.endsWith(SUFFIX)).toSorted();
      const read: StoredRegistration[] = [];
      const entries = files.values();
      const worker = async (): Promise<void> => {
        for (const file of entries) {
          const registration = await this.#read(file, onDamaged);
          if (registration !== undefined) read.push(registration);
        }
      };
      await Promise.all(Array.from({ length: READ_CONCURRENCY }, worker));
      return read.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    });
  }

  put(registration: StoredRegistration): Promise<void> {
    return this.#run("cannot be written", async () => {
      await this.#write(fileName(registration.name), encodeRegistration(registration));
    });
  }

  remove(name: string): Promise<void> {
    return this.#run("cannot be deleted", async () => {
      await rm(this.#path(fileName(name)), { force: true });
      await syncFolder(this.#folder);
    });
  }

  check(): Promise<void> {
    return this.#run("cannot be written", async () => {
      await this.#makeFolder();
      await rm(await this.#writeBeside("tool-check", ""));
    });
  }

  /** Waits for what is being written. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  async #run<T>(problem: string, task: () => Promise<T>): Promise<T> {
    const running = task().catch((cause: unknown) => {
      const message = `registrations ${problem}: check space and permissions of the state folder`;
      throw new GatewayError("STORE_FAILED", message, { cause });
    });
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  #path(file: string): string {
    return join(this.#folder, file);
  }

  async #makeFolder(): Promise<void> {
    const made = await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (made !== undefined) await syncFolder(dirname(made));
  }

  async #list(): Promise<string[]> {
    try {
      return await readdir(this.#folder);
    } catch (error) {
      if (hasCode(error, "ENOENT")) return [];
      throw error;
    }
  }

  async #read(
    file: string,
    onDamaged: (entry: string, problem: string) => void,
  ): Promise<StoredRegistration | undefined> {
    const entry = toolName(file) ?? file;
    const damaged = (what: string): undefined => {
      const mend = "register the tool again, or delete the file";
      onDamaged(entry, `the registration in ${this.#path(file)} ${what}: ${mend}`);
    };
    try {
      const registration = decodeRegistration(await readFile(this.#path(file), "utf8"));
      return fileName(registration.name) === file ? registration : damaged("belongs to a tool of another name");
    } catch (error) {
      if (error instanceof SyntaxError) return damaged("is damaged");
      return damaged(`cannot be read (${error instanceof Error && "code" in error ? String(error.code) : "fault"})`);
    }
  }

  async #write(file: string, text: string): Promise<void> {
    await this.#makeFolder();
    const temporary = await this.#writeBeside(file, text);
    try {
      await rename(temporary, this.#path(file));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(this.#folder);
  }

  /** Writes a temporary file and makes it durable; returns its path. */
  async #writeBeside(file: string, text: string): Promise<string> {
    const path = this.#path(`.${file}.${randomUUID()}.tmp`);
    let handle: FileHandle | undefined;
    try {
      handle = await open(path, "wx", 0o600);
      await handle.writeFile(text, "utf8");
      await handle.sync();
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await handle?.close();
    }
    return path;
  }
}

/** Makes names durable: a rename lives in the folder. Windows has no such call and needs none. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  let folder: FileHandle | undefined;
  try {
    folder = await open(path, "r");
    await folder.sync();
  } catch (error) {
    // Nothing can have been removed from a folder that is not there.
    if (!hasCode(error, "ENOENT")) throw error;
  } finally {
    await folder?.close();
  }
}

/** A file name that is safe on every file system, also where case does not count; each tool has another. */
function fileName(tool: string): string {
  const encoded = Array.from(Buffer.from(tool), (byte) => {
    const character = String.fromCharCode(byte);
    return /[a-z0-9_-]/.test(character) ? character : `%${byte.toString(16).padStart(2, "0")}`;
  }).join("");
  if (encoded.length <= MAX_ENCODED_NAME) return PREFIX + encoded + SUFFIX;
  const hash = createHash("sha256").update(tool).digest("hex");
  return `${PREFIX}${encoded.slice(0, MAX_ENCODED_NAME - hash.length)}+${hash}${SUFFIX}`;
}

/** The tool a file name is for; `undefined` for one that was not made for a tool, or whose name was cut. */
function toolName(file: string): string | undefined {
  try {
    const name = decodeURIComponent(file.slice(PREFIX.length, -SUFFIX.length));
    return fileName(name) === file ? name : undefined;
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
