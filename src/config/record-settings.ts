import { join, resolve } from "node:path";
import type { JsonValue } from "../core/json.ts";
import { count, duration, path, type Setting, size } from "./setting.ts";

const SECOND = 1_000;
const DAY = 86_400_000;
const GIB = 1_073_741_824;

/** Which records are kept, and how long, by dotted key. */
export const RECORD_SETTINGS = {
  "records.folder": path(
    "Folder of the records, relative to this file; built in: `records` in the state folder. Nothing else stands in it.",
  ),
  "records.gateway": {
    schema: {
      type: "boolean",
      description:
        "Whether each call is put on record in `gateway.jsonl`: one line with ids, caller, tool, a digest of the arguments, outcome, durations and sizes. No arguments and no results.",
    },
    standard: true,
  },
  "records.session": {
    schema: {
      type: "boolean",
      description:
        "Whether what models and tools say is put on record in `session.jsonl`: the arguments as they came and as they were checked, requests, upstream statuses and results, secrets masked. Who reads that file reads what users asked.",
    },
    standard: false,
  },
  "records.audit": {
    schema: {
      type: "boolean",
      description:
        "Whether `audit.jsonl` is written: registrations, API keys, changes of settings, start and stop, and whoever was refused.",
    },
    standard: true,
  },
  "records.file_bytes": size(
    "16MiB",
    [64 * 1_024, GIB],
    "A file of records that has grown so large is closed, and another one begun.",
  ),
  "records.file_age": duration("24h", [SECOND, 30 * DAY], "So old a file of records is closed, and another one begun."),
  "records.retention": duration("720h", [SECOND, 3_650 * DAY], "How long a closed file is kept."),
  "records.max_files": { ...count([1, 100_000], "Most closed files of each log; the oldest goes."), standard: 100 },
  "records.max_bytes": size(
    "1GiB",
    [64 * 1_024, 1_024 * GIB],
    "Most bytes of each log, of its files together; the oldest goes.",
  ),
} as const satisfies Readonly<Record<string, Setting>>;

/** Bounds of each log. */
export interface RecordLimits {
  readonly fileBytes: number;
  readonly fileAgeMs: number;
  readonly retentionMs: number;
  readonly maxFiles: number;
  readonly maxBytes: number;
}

/** Which records are kept. */
export interface RecordSettings extends RecordLimits {
  /** Absolute; `undefined`: `records` in the state folder, wherever that is. */
  readonly folder: string | undefined;
  readonly gateway: boolean;
  readonly session: boolean;
  readonly audit: boolean;
}

/** Reads what `records` says. `folder`: the one of gateway.yaml. */
export function readRecords(values: ReadonlyMap<string, JsonValue>, folder: string): RecordSettings {
  const at = (key: keyof typeof RECORD_SETTINGS): JsonValue | undefined => values.get(key);
  const named = at("records.folder");
  return {
    folder: typeof named === "string" ? resolve(folder, named) : undefined,
    gateway: at("records.gateway") === true,
    session: at("records.session") === true,
    audit: at("records.audit") === true,
    fileBytes: Number(at("records.file_bytes")),
    fileAgeMs: Number(at("records.file_age")),
    retentionMs: Number(at("records.retention")),
    maxFiles: Number(at("records.max_files")),
    maxBytes: Number(at("records.max_bytes")),
  };
}

/** Absolute path of the folder of the records. */
export function recordFolder({
  state,
  records,
}: {
  readonly state: { readonly folder: string };
  readonly records: Pick<RecordSettings, "folder">;
}): string {
  return records.folder ?? join(state.folder, "records");
}
