import type { Stats } from "node:fs";

/** What tells one state of a file from another. */
export interface FileStat {
  /** Equal stamps: the content is the same. */
  readonly stamp: string;
  /** The file itself, under whatever name. */
  readonly identity: string;
  /** Milliseconds since the epoch, by the file system's clock. */
  readonly mtimeMs: number;
  readonly size: number;
}

/** Change time is part of the stamp, since a mode that is mended or a time that is set back counts too. */
export function fileStat(stats: Stats): FileStat {
  const identity = `${stats.dev}:${stats.ino}:${stats.birthtimeMs}`;
  const stamp = `${identity}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
  return { stamp, identity, mtimeMs: stats.mtimeMs, size: stats.size };
}

/** Code of a file system error, such as `ENOENT`. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown error";
}

/** Whether the error says that there is nothing at the path. */
export function isMissing(code: string): boolean {
  return code === "ENOENT" || code === "ENOTDIR";
}

/** What is wrong and the mend, for a file or folder that the system does not let us read. */
export function unreadable(code: string): string {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return `cannot be read (${code}): give the user that the gateway runs as the right to read it`;
    case "ELOOP":
      return "cannot be read (ELOOP): its symbolic links lead in a circle";
    case "EMFILE":
    case "ENFILE":
      return `cannot be read (${code}): too many files are open; raise the limit (ulimit -n)`;
    default:
      return `cannot be read (${code}): check the file system`;
  }
}
