import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import { isJsonObject, type JsonObject, ownValue, parseJson, stringifyJson } from "../core/json.ts";
import { type ProcessIdentity, processIdentity, processState } from "./process-identity.ts";

const LOCK = "gateway.lock";

/** How often a holder shows that it lives. */
const BEAT_MS = 5_000;

/** A lock is stale after this long without a beat, where nothing else tells. */
const STALE_MS = 30_000;

/** Taking a stale lock over takes no longer. */
const TAKING_MS = 5_000;

/**
 * Keeps other gateways out of a folder until it is disposed. A holder that died, by SIGKILL too, keeps nobody out: at
 * once where this machine can tell, else after 30 s. `undefined` where nothing can be written there, since nothing
 * needs to be kept apart then.
 *
 * @throws GatewayError STORE_FAILED, naming the folder and the process that has it.
 */
export async function lockFolder(folder: string, clock: Clock): Promise<AsyncDisposable | undefined> {
  const path = join(folder, LOCK);
  const identity = await processIdentity();
  const token = randomUUID();
  const text = stringifyJson({ token, host: hostname(), ...identity });
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await take(path, text, identity);
  } catch (error) {
    if (error instanceof HeldByOther) throw heldByOther(folder, error.pid);
    if (hasCode(error, "EACCES", "EPERM", "EROFS")) return undefined;
    throw new GatewayError("STORE_FAILED", `state folder ${folder} cannot be locked: check space and permissions`, {
      cause: error,
    });
  }
  return new HeldLock(path, token, clock);
}

class HeldLock implements AsyncDisposable {
  readonly #path: string;
  readonly #token: string;
  readonly #clock: Clock;
  #timer: Disposable;
  #beating: Promise<void> | undefined;

  constructor(path: string, token: string, clock: Clock) {
    this.#path = path;
    this.#token = token;
    this.#clock = clock;
    this.#timer = this.#next();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]();
    await this.#beating;
    // Whoever has it by now shall keep it.
    if ((await readLock(this.#path))?.token === this.#token) await rm(this.#path, { force: true });
  }

  #next(): Disposable {
    return this.#clock.after(BEAT_MS, () => {
      this.#beating = beat(this.#path);
      this.#timer = this.#next();
    });
  }
}

/** A disk that refuses it refuses what the lock protects too. */
async function beat(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => undefined);
}

class HeldByOther extends Error {
  readonly pid: number | undefined;

  constructor(pid: number | undefined) {
    super("the lock is held");
    this.name = "HeldByOther";
    this.pid = pid;
  }
}

async function take(path: string, text: string, identity: ProcessIdentity): Promise<void> {
  if (await create(path, text)) return;
  await refuseIfHeld(path, identity);
  // Of those that find it stale at the same time, one takes it over and the others look again.
  const taking = `${path}.taking`;
  await removeOlderThan(taking, TAKING_MS);
  if (!(await create(taking, text))) throw new HeldByOther((await readLock(taking))?.pid);
  try {
    await refuseIfHeld(path, identity);
    const next = `${path}.${randomUUID()}.tmp`;
    await writeFile(next, text, { mode: 0o600 });
    await rename(next, path);
  } finally {
    await rm(taking, { force: true });
  }
}

/** Whether the file was made: it was not there before. */
async function create(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

async function refuseIfHeld(path: string, identity: ProcessIdentity): Promise<void> {
  const lock = await readLock(path);
  if (lock === undefined) return;
  const state = lock.host === hostname() ? await processState(lock, identity) : "unknown";
  if (state === "dead" || (state === "unknown" && isOlderThan(lock.beatMs, STALE_MS))) return;
  throw new HeldByOther(lock.pid);
}

interface ReadLock extends ProcessIdentity {
  readonly token: string;
  readonly host: string;
  /** When its holder showed last that it lives. */
  readonly beatMs: number;
}

/** `undefined` where there is none. One that was written in part says nothing but when. */
async function readLock(path: string): Promise<ReadLock | undefined> {
  try {
    const { mtimeMs: beatMs } = await stat(path);
    return { ...lockOf(await readFile(path, "utf8")), beatMs };
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function lockOf(text: string): Omit<ReadLock, "beatMs"> {
  const value = parsedObject(text);
  const textAt = (key: string): string => {
    const found = ownValue(value, key);
    return typeof found === "string" ? found : "";
  };
  return {
    token: textAt("token"),
    host: textAt("host"),
    pid: Number(ownValue(value, "pid") ?? 0),
    since: textAt("since"),
  };
}

function parsedObject(text: string): JsonObject {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

async function removeOlderThan(path: string, ageMs: number): Promise<void> {
  const lock = await readLock(path);
  if (lock !== undefined && isOlderThan(lock.beatMs, ageMs)) await rm(path, { force: true });
}

/** By the clock of the file system's machine, which is this one or close to it. */
function isOlderThan(timeMs: number, ageMs: number): boolean {
  return Date.now() - timeMs > ageMs;
}

function heldByOther(folder: string, pid: number | undefined): GatewayError {
  const who = pid === undefined || pid === 0 ? "another gateway" : `another gateway (process ${pid})`;
  const mend = "stop that one, or give this one a folder of its own with --state or `state.folder` in gateway.yaml";
  return new GatewayError("STORE_FAILED", `state folder ${folder} is in use by ${who}: ${mend}`, {
    metadata: { folder, ...(pid === undefined ? {} : { pid: String(pid) }) },
  });
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
