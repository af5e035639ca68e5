import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, sleep } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { LoginStore, ServerLogin } from "../core/logins.ts";
import type { SecretSource } from "../core/secrets.ts";
import { decodeLogin, encodeLogin } from "./login-codec.ts";
import { parseKey } from "./result-cipher.ts";

/** Only the gateway's own user may read and write. */
const MODE = 0o600;

/** Largest file that is read. */
const MAX_BYTES = 1024 * 1024;

/** Time between two looks whether a login is another. */
const LOOK_MS = 500;

/** How long another process may write, and after how long it must have died on the way. */
const LOCK_WAIT_MS = 5_000;
const LOCK_DEAD_MS = 10_000;
const LOCK_LOOK_MS = 20;

/** What logins are kept with. */
export interface FileLoginsOptions {
  /** Absolute path. */
  readonly folder: string;
  readonly clock: Clock;
  readonly secrets: Pick<SecretSource, "fresh" | "missing" | "resolve">;
  /** Reference of the secret that logins are sealed with. Undefined: they stand as they are. */
  readonly keyRef: string | undefined;
}

/** Where the logins of a state folder are, and what they are sealed with. */
export function loginsPlace(state: {
  readonly folder: string;
  readonly encryptionKey?: string | undefined;
}): Pick<FileLoginsOptions, "folder" | "keyRef"> {
  return { folder: join(state.folder, "logins"), keyRef: state.encryptionKey };
}

/**
 * Keeps logins in a folder, one file each. Several processes may use it: the command that somebody logs in with, and
 * the gateway that renews the tokens. The folder is made with the first login.
 */
export function createFileLogins(options: FileLoginsOptions): LoginStore {
  return new FileLogins(options);
}

class FileLogins implements LoginStore {
  readonly #options: FileLoginsOptions;

  constructor(options: FileLoginsOptions) {
    this.#options = options;
  }

  async read(server: string): Promise<ServerLogin | undefined> {
    const file = this.#fileOf(server);
    const text = file === undefined ? undefined : await this.#text(file);
    if (file === undefined || text === undefined) return undefined;
    const found = decodeLogin(text, server, await this.#key());
    if (found === "damaged") throw unusable(file, "is damaged: log in again");
    if (found !== "sealed") return found;
    const { keyRef } = this.#options;
    const why = keyRef === undefined ? "`state.encryption_key` is not set" : `secret ${keyRef} is not its key`;
    throw new GatewayError(
      "SECRET_MISSING",
      `the login ${file} is encrypted, and ${why}; set it, or run \`toolgate login ${server}\``,
    );
  }

  put(login: ServerLogin): Promise<void> {
    return this.#alone(async () => this.#write(login));
  }

  update(server: string, id: string, change: (login: ServerLogin) => ServerLogin): Promise<ServerLogin | undefined> {
    return this.#alone(async () => {
      const found = await this.read(server);
      if (found?.id !== id) return found;
      const next = change(found);
      await this.#write(next);
      return next;
    });
  }

  remove(server: string): Promise<ServerLogin | undefined> {
    return this.#alone(async () => {
      const file = this.#fileOf(server);
      // One that cannot be read is removed all the same.
      const found = await this.read(server).catch(() => undefined);
      if (file !== undefined) await rm(file, { force: true });
      return found;
    });
  }

  watch(server: string, changed: () => void): Disposable {
    const file = this.#fileOf(server);
    const stop = new AbortController();
    if (file !== undefined) void this.#look(file, changed, stop.signal);
    return { [Symbol.dispose]: () => stop.abort() };
  }

  async #look(file: string, changed: () => void, signal: AbortSignal): Promise<void> {
    let known = await stampOf(file);
    while (!signal.aborted) {
      await sleep(this.#options.clock, LOOK_MS, signal).catch(() => undefined);
      const stamp = await stampOf(file);
      if (stamp === known || signal.aborted) continue;
      known = stamp;
      changed();
    }
  }

  /** A name that no declaration has is nobody's file. Capital letters are spelt, as not every file system keeps them apart. */
  #fileOf(server: string): string | undefined {
    if (!/^[\w.-]{1,64}$/.test(server)) return undefined;
    const name = server.replaceAll(/[A-Z.]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
    return join(this.#options.folder, `${name}.json`);
  }

  async #text(file: string): Promise<string | undefined> {
    try {
      if ((await stat(file)).size > MAX_BYTES) throw unusable(file, "is too large");
      return await readFile(file, "utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error instanceof GatewayError ? error : unusable(file, `cannot be read (${codeOf(error)})`, error);
    }
  }

  async #write(login: ServerLogin): Promise<void> {
    const file = this.#fileOf(login.server);
    if (file === undefined) throw new GatewayError("INTERNAL", "internal error");
    const text = encodeLogin(login, await this.#key());
    const draft = `${file}.${randomBytes(4).toString("hex")}.part`;
    try {
      await using handle = await open(draft, "wx", MODE);
      await handle.writeFile(text);
      await handle.sync();
      await rename(draft, file);
    } catch (error) {
      await rm(draft, { force: true });
      throw unusable(file, `cannot be written (${codeOf(error)})`, error);
    }
  }

  async #key(): Promise<Uint8Array | undefined> {
    const { keyRef, secrets } = this.#options;
    if (keyRef === undefined) return undefined;
    await secrets.fresh([keyRef], new AbortController().signal);
    const missing = secrets.missing(keyRef);
    const key = missing === undefined ? parseKey(secrets.resolve(keyRef)) : undefined;
    if (key !== undefined) return key;
    const why = missing?.why ?? "is no key: 32 bytes as 64 hexadecimal digits or as base64";
    throw new GatewayError("SECRET_MISSING", `secret ${keyRef} of \`state.encryption_key\` ${why}`, {
      metadata: { secret: keyRef },
    });
  }

  /** One process at a time. A lock that nobody takes away is that of one that died. */
  async #alone<T>(task: () => Promise<T>): Promise<T> {
    const { folder, clock } = this.#options;
    const path = join(folder, ".lock");
    const endMs = clock.monotonicMs() + LOCK_WAIT_MS;
    const never = new AbortController().signal;
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      while (!(await isTaken(path))) {
        const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
        if (age > LOCK_DEAD_MS) await rm(path, { force: true });
        else if (clock.monotonicMs() > endMs) throw unusable(path, "is there: another process changes the logins");
        else await sleep(clock, LOCK_LOOK_MS, never);
      }
    } catch (error) {
      throw error instanceof GatewayError ? error : unusable(path, `cannot be made (${codeOf(error)})`, error);
    }
    try {
      return await task();
    } finally {
      await rm(path, { force: true });
    }
  }
}

/** Whether the lock is ours now. */
async function isTaken(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx", MODE)).close();
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function stampOf(file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(file);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return codeOf(error);
  }
}

function unusable(file: string, problem: string, cause?: unknown): GatewayError {
  const text = `the login ${file} ${problem}; look at the space and permissions of the state folder`;
  return new GatewayError("STORE_FAILED", text, cause === undefined ? {} : { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
