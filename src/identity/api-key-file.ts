import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError } from "../core/errors.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, isJsonObject, ownValue, parseJson, stringifyJson } from "../core/json.ts";
import type { StoredKey } from "./api-keys.ts";

const VERSION = 1;
const MAX_FILE_BYTES = 16 * 1024 * 1024;
/** Only the gateway's own user may read and write: who can write here lets anybody in. */
const MODE = 0o600;
/** How long another command may write, and after how long it must have died on the way. */
const LOCK_WAIT_MS = 5_000;
const LOCK_DEAD_MS = 10_000;
const LOCK_LOOK_MS = 20;

/** The file of API keys in a state folder. */
export function apiKeyFile(stateFolder: string): string {
  return join(stateFolder, "api-keys.json");
}

/**
 * The keys of a file; none where there is no file.
 *
 * @throws GatewayError STORE_FAILED naming the file and the mend.
 */
export async function readApiKeys(file: string): Promise<readonly StoredKey[]> {
  let text: string;
  try {
    if ((await stat(file)).size > MAX_FILE_BYTES) throw unusable(file, "is too large");
    text = await readFile(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error instanceof GatewayError ? error : unusable(file, `cannot be read (${codeOf(error)})`, error);
  }
  const keys = parseKeys(text);
  if (keys === undefined) throw unusable(file, "is damaged");
  return keys;
}

/**
 * Replaces the keys of a file by what `change` makes of them, whole or not at all. Of two commands at once the second
 * waits.
 *
 * @throws GatewayError STORE_FAILED, and what `change` throws.
 */
export async function changeApiKeys(
  file: string,
  change: (keys: readonly StoredKey[]) => readonly StoredKey[],
): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await using _lock = await lockFile(`${file}.lock`);
  const next = change(await readApiKeys(file));
  const temporary = `${file}.${randomBytes(4).toString("hex")}`;
  try {
    await using handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, MODE);
    await handle.writeFile(`${stringifyJson({ version: VERSION, keys: next.map(encodeKey) }, 2)}\n`);
    await handle.sync();
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw unusable(file, `cannot be written (${codeOf(error)})`, error);
  }
}

/** One command at a time. A lock that nobody takes away is that of one that died. */
async function lockFile(path: string): Promise<AsyncDisposable> {
  const end = Date.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      await (await open(path, "wx", MODE)).close();
      return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw unusable(path, `cannot be made (${codeOf(error)})`, error);
      const made = await stat(path).then(
        ({ mtimeMs }) => mtimeMs,
        () => Date.now(),
      );
      if (Date.now() - made > LOCK_DEAD_MS) await rm(path, { force: true });
      else if (Date.now() > end) throw unusable(path, "is there: another command changes the keys");
      else await delay(LOCK_LOOK_MS);
    }
  }
}

function encodeKey(key: StoredKey): JsonObject {
  return {
    id: key.id,
    name: key.name,
    roles: key.roles,
    salt: key.salt,
    hash: key.hash,
    create_time_ms: key.createTimeMs,
    ...(key.expireTimeMs === undefined ? {} : { expire_time_ms: key.expireTimeMs }),
    ...(key.revokeTimeMs === undefined ? {} : { revoke_time_ms: key.revokeTimeMs }),
  };
}

/** Undefined where any of it is not as it was written: half a list of keys must not pass for the whole. */
function parseKeys(text: string): readonly StoredKey[] | undefined {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || ownValue(value, "version") !== VERSION) return undefined;
  const list = ownValue(value, "keys");
  if (!isJsonArray(list)) return undefined;
  const keys = list.map((entry) => (isJsonObject(entry) ? decodeKey(entry) : undefined));
  return keys.every((key) => key !== undefined) ? keys : undefined;
}

function decodeKey(entry: JsonObject): StoredKey | undefined {
  const text = (name: string, pattern: RegExp): string | undefined => {
    const value = ownValue(entry, name);
    return typeof value === "string" && pattern.test(value) ? value : undefined;
  };
  const time = (name: string): number | undefined => {
    const value = ownValue(entry, name);
    return typeof value === "number" ? value : undefined;
  };
  const roles = ownValue(entry, "roles");
  const key = {
    id: text("id", /^[a-z0-9]{12}$/),
    name: text("name", /./),
    salt: text("salt", /^[0-9a-f]{32}$/),
    hash: text("hash", /^[0-9a-f]{64}$/),
    createTimeMs: time("create_time_ms"),
    roles: isJsonArray(roles) && roles.every((role) => typeof role === "string") ? roles : undefined,
  };
  if (!isWhole(key)) return undefined;
  return { ...key, expireTimeMs: time("expire_time_ms"), revokeTimeMs: time("revoke_time_ms") };
}

function isWhole<T extends object>(value: T): value is { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.values(value).every((member) => member !== undefined);
}

function unusable(file: string, problem: string, cause?: unknown): GatewayError {
  const text = `the file of API keys ${file} ${problem}; give the gateway's user the right to it, or restore it from a copy`;
  return new GatewayError("STORE_FAILED", text, cause === undefined ? {} : { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
