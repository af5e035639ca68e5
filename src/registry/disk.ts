import * as fs from "node:fs";
import { promisify } from "node:util";
import type { Clock } from "../core/clock.ts";
import { Pacer } from "./pacer.ts";

/** What may wait for a disk. */
export interface Disk {
  stat(path: string): Promise<fs.Stats>;
  open(path: string, flags: number): Promise<number>;
  /** Reads on from `at` up to the buffer's end and returns how many bytes there were. */
  read(file: number, buffer: Buffer, at: number): Promise<number>;
}

const open = promisify(fs.open);
const read = promisify(fs.read);

/** Waits in the thread pool, so that a slow disk holds up nothing else. */
export const pooledDisk: Disk = {
  // Half the CPU time of the one in `fs/promises`.
  stat: promisify(fs.stat),
  open: (path, flags) => open(path, flags),
  read: async (file, buffer, at) => (await read(file, buffer, at, buffer.length - at, at)).bytesRead,
};

/**
 * Waits on the spot, in slices of 8 ms. For the start, when no call is there to be held up: the way to the thread pool
 * and back takes ten times the CPU time of the work itself, and there may be 10,000 files.
 */
export function createDirectDisk(clock: Clock): Disk {
  const pacer = new Pacer(clock);
  return {
    stat: async (path) => {
      await pacer.turn();
      return fs.statSync(path);
    },
    open: async (path, flags) => {
      await pacer.turn();
      return fs.openSync(path, flags);
    },
    read: async (file, buffer, at) => fs.readSync(file, buffer, at, buffer.length - at, at),
  };
}
