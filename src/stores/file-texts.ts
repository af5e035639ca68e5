import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TextCache } from "../core/store.ts";

/** Most texts that are kept; the oldest go. */
const MAX_FILES = 2_000;

/** Largest text that is read. */
const MAX_BYTES = 32 * 1024 * 1024;

/** Keeps texts in a folder, one file each. The folder is made with the first of them. */
export function createFileTexts(folder: string): TextCache {
  const fileOf = (key: string): string => join(folder, `${key}.json`);
  let writing: Promise<void> = Promise.resolve();

  async function put(key: string, text: string): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const draft = join(folder, `.${key}.part`);
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, fileOf(key));
    await dropOldest(folder);
  }

  return {
    async read(key) {
      try {
        const { size } = await stat(fileOf(key));
        return size > MAX_BYTES ? undefined : await readFile(fileOf(key), "utf8");
      } catch {
        // What cannot be read is as if it had never been kept.
        return undefined;
      }
    },
    write(key, text) {
      // What cannot be kept is learnt again; one after the other, since two of one key would share a draft.
      writing = writing.then(() => put(key, text)).catch(() => undefined);
      return writing;
    },
  };
}

async function dropOldest(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".json"));
  if (names.length <= MAX_FILES) return;
  const files = await Promise.all(
    names.map(async (name) => ({ name, time: (await stat(join(folder, name))).mtimeMs })),
  );
  const old = files.toSorted((a, b) => a.time - b.time).slice(0, names.length - MAX_FILES);
  await Promise.all(old.map(({ name }) => rm(join(folder, name), { force: true })));
}
