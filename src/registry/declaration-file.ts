import * as fs from "node:fs";
import { MAX_DECLARATION_BYTES } from "./declaration-source.ts";
import type { Disk } from "./disk.ts";
import { errorCode, type FileStat, fileStat, isMissing } from "./file-stat.ts";

/** What was found at a path. */
export type FileReading =
  | { readonly kind: "missing" }
  | { readonly kind: "folder" }
  /** A pipe, socket or device. */
  | { readonly kind: "special" }
  | { readonly kind: "failed"; readonly code: string }
  /** It was not wanted. */
  | { readonly kind: "unread"; readonly stat: FileStat }
  | { readonly kind: "too-large"; readonly stat: FileStat }
  | {
      readonly kind: "bytes";
      readonly stat: FileStat;
      readonly bytes: Uint8Array;
      /** False: it changed while it was read. */
      readonly whole: boolean;
    };

/**
 * Reads a file of at most 1 MiB. Never rejects.
 *
 * @param wanted decides by the file's state whether its content is read.
 */
export async function readDeclarationFile(
  path: string,
  disk: Disk,
  wanted: (stat: FileStat) => boolean,
): Promise<FileReading> {
  let file: number | undefined;
  try {
    // Without O_NONBLOCK a pipe would hold a thread of the pool until somebody writes into it.
    file = await disk.open(path, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0));
    // The state of a file that is open is in memory.
    const stats = fs.fstatSync(file);
    if (stats.isDirectory()) return { kind: "folder" };
    if (!stats.isFile()) return { kind: "special" };
    const stat = fileStat(stats);
    if (!wanted(stat)) return { kind: "unread", stat };
    if (stat.size > MAX_DECLARATION_BYTES) return { kind: "too-large", stat };
    const bytes = await readAtMost(disk, file, stat.size);
    const after = fileStat(fs.fstatSync(file));
    return { kind: "bytes", stat, bytes, whole: after.stamp === stat.stamp && bytes.length === stat.size };
  } catch (error) {
    const code = errorCode(error);
    // A socket cannot be opened at all. Source: open(2), ENXIO.
    if (code === "ENXIO") return { kind: "special" };
    // Windows does not open folders.
    if (code === "EISDIR") return { kind: "folder" };
    return isMissing(code) ? { kind: "missing" } : { kind: "failed", code };
  } finally {
    if (file !== undefined) fs.closeSync(file);
  }
}

async function readAtMost(disk: Disk, file: number, size: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const bytes = await disk.read(file, buffer, filled);
    if (bytes === 0) break;
    filled += bytes;
  }
  return buffer.subarray(0, filled);
}
