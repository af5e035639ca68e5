import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import { type SecretProvider, setValue, withoutLineEnd } from "./secret-provider.ts";
import { WatchedFile } from "./watched-file.ts";

/** Most files that are read. */
const MAX_FILES = 1_000;

/** Longest secret. */
const MAX_BYTES = 64 * 1024;

/** How often a folder that changes while it is read is read again. */
const ATTEMPTS = 3;

/**
 * A folder with a file for each secret, as Kubernetes and Docker mount them: the name of the file is the reference. Read
 * again when any of it is another; a folder that cannot be read leaves the last good one in force.
 */
export class SecretFolder implements SecretProvider {
  readonly #folder: string;
  readonly #watched: WatchedFile;
  #values: ReadonlyMap<string, string> = new Map();

  constructor(folder: string, { clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#folder = folder;
    this.#watched = new WatchedFile({
      file: folder,
      clock,
      stateOf: () => folderState(folder),
      read: async () => {
        this.#values = await readFolder(folder);
        logger.info("secrets-loaded", { folder, secrets: this.#values.size });
      },
      failed: (error) => logger.error("secrets-rejected", { folder, error, lastGoodServing: true }),
    });
  }

  mend(reference: string): string {
    return `write it to ${join(this.#folder, reference)}`;
  }

  read(reference: string): string | undefined {
    return setValue(this.#values.get(reference));
  }

  start(): Promise<void> {
    return this.#watched.start();
  }

  look(): Promise<void> | undefined {
    return this.#watched.fresh();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#values = new Map();
  }
}

interface SecretFile {
  readonly name: string;
  readonly size: number;
  /** Changes with the file, also where a symlink on the way to it was swapped. */
  readonly state: string;
}

/** Every secret at one moment: Kubernetes swaps all of them at once by one symlink. @throws GatewayError. */
async function readFolder(folder: string): Promise<ReadonlyMap<string, string>> {
  for (let attempt = 1; ; attempt++) {
    const files = await listFiles(folder);
    const large = files.find(({ size }) => size > MAX_BYTES);
    if (large !== undefined)
      throw unusable(folder, `${large.name} has ${large.size} bytes; at most ${MAX_BYTES} are read`);
    try {
      const texts = await Promise.all(files.map(({ name }) => readFile(join(folder, name), "utf8")));
      if (attempt === ATTEMPTS || keyOf(files) === keyOf(await listFiles(folder))) {
        return new Map(files.map(({ name }, i) => [name, withoutLineEnd(texts[i] ?? "")]));
      }
    } catch (cause) {
      if (attempt === ATTEMPTS) throw unusable(folder, "its files cannot be read by the gateway's user", cause);
    }
  }
}

async function folderState(folder: string): Promise<string> {
  try {
    return keyOf(await listFiles(folder));
  } catch (error) {
    return error instanceof GatewayError ? error.message : "";
  }
}

/** Its files by name; folders and what begins with a dot are none. @throws GatewayError. */
async function listFiles(folder: string): Promise<readonly SecretFile[]> {
  let names: readonly string[];
  try {
    names = (await readdir(folder)).filter((name) => !name.startsWith("."));
  } catch (cause) {
    throw unusable(folder, "it cannot be read: mount the secrets there, or correct the path", cause);
  }
  if (names.length > MAX_FILES) throw unusable(folder, `it has ${names.length} files; at most ${MAX_FILES} are read`);
  const files = await Promise.all(
    names.toSorted().map(async (name): Promise<SecretFile | undefined> => {
      // One that goes away meanwhile is none.
      const found = await stat(join(folder, name)).catch(() => undefined);
      if (found?.isFile() !== true) return undefined;
      const { ino, size, mtimeMs, ctimeMs } = found;
      return { name, size, state: `${name} ${ino} ${size} ${mtimeMs} ${ctimeMs}` };
    }),
  );
  return files.filter((file) => file !== undefined);
}

function keyOf(files: readonly SecretFile[]): string {
  return files.map(({ state }) => state).join("\n");
}

function unusable(folder: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError("INTERNAL", `secrets.folder ${folder}: ${why}`, { cause });
}
