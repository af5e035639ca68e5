import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import type { SpillFile, SpillStore } from "../core/store.ts";

/** Keeps output in files of a folder of its own, which is emptied at the first use. Disposing closes those left open. */
export function createSpillFiles(folder: string): SpillStore {
  let ready: Promise<unknown> | undefined;
  let next = 0;
  const files = new Set<SpillFile>();
  const prepare = async (): Promise<void> => {
    try {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      ready = undefined;
      throw error;
    }
  };
  return {
    async open() {
      try {
        ready ??= prepare();
        await ready;
        const path = join(folder, `${next++}.stream`);
        const file = spillFile(await open(path, "wx+", 0o600), path, () => void files.delete(file));
        files.add(file);
        return file;
      } catch (cause) {
        throw new GatewayError("STORE_FAILED", "output cannot be kept on disk; check the state folder", { cause });
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...files].map((file) => file[Symbol.asyncDispose]()));
      if (ready !== undefined) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    },
  };
}

function spillFile(handle: FileHandle, path: string, gone: () => void): SpillFile {
  return {
    async write(bytes, offset) {
      await handle.write(bytes, 0, bytes.byteLength, offset);
    },
    async read(offset, length) {
      const bytes = new Uint8Array(length);
      const { bytesRead } = await handle.read(bytes, 0, length, offset);
      return bytes.subarray(0, bytesRead);
    },
    async [Symbol.asyncDispose]() {
      gone();
      // What cannot be closed or removed now is removed at the next start.
      await handle.close().catch(() => undefined);
      await rm(path, { force: true }).catch(() => undefined);
    },
  };
}
