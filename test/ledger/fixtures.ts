import { silentLogger } from "../../src/core/logger.ts";
import type { SpillFile, SpillStore } from "../../src/core/store.ts";
import { type EventForm, EventLog, type EventLogLimits } from "../../src/ledger/event-log.ts";

/** Texts as events, of which each takes its length. */
export const TEXTS: EventForm<string> = {
  bytesOf: (text) => text.length,
  encode: (texts) => Buffer.from(JSON.stringify(texts)),
  decode: (bytes) => JSON.parse(Buffer.from(bytes).toString()) as string[],
};

/** A disk in memory that can be made to fail. */
export interface FakeDisk extends SpillStore {
  readonly files: readonly (SpillFile & { readonly size: number })[];
  broken: boolean;
  /** Files that are open. */
  open_: number;
}

export function createFakeDisk(): FakeDisk {
  const files: (SpillFile & { size: number })[] = [];
  const disk: FakeDisk = {
    files,
    broken: false,
    open_: 0,
    async open() {
      if (disk.broken) throw new Error("no disk");
      let bytes = Buffer.alloc(0);
      disk.open_ += 1;
      const file: SpillFile & { size: number } = {
        size: 0,
        async write(piece, offset) {
          if (disk.broken) throw new Error("disk full");
          const grown = Buffer.alloc(Math.max(bytes.length, offset + piece.byteLength));
          bytes.copy(grown);
          grown.set(piece, offset);
          bytes = grown;
          file.size = bytes.length;
        },
        read: async (offset, length) => bytes.subarray(offset, offset + length),
        async [Symbol.asyncDispose]() {
          disk.open_ -= 1;
        },
      };
      files.push(file);
      return file;
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  return disk;
}

/** A log of texts. */
export function textLog(limits: EventLogLimits, spill: SpillStore = createFakeDisk()): EventLog<string> {
  return new EventLog({ ...limits, form: TEXTS, spill, logger: silentLogger });
}
