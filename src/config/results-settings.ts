import type { JsonValue } from "../core/json.ts";
import { count, duration, path, type Setting, size } from "./setting.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;
const KIB = 1_024;
const GIB = 1_073_741_824;

/** What results may take of a model's window, and how those that are too long are kept for reading on, by dotted key. */
export const RESULTS_SETTINGS = {
  "results.model_window": count(
    [1_000, 100_000_000],
    "Tokens that the models of callers can take, for calls that do not say it (`model_window`): one result, or one stream, has 15 % of them, the results of one turn (`context.turn_id`) together 30 %, or 8,000 and 16,000 characters if that is more. Absent: these calls have no such budget.",
  ),
  "results.keep": {
    schema: {
      type: "boolean",
      description:
        "Whether a result that is too long is kept whole in the state folder, to be read on by the handle that its shortened text names; the tools `result_read` and `result_search` are listed then.",
    },
    standard: false,
  },
  "results.ttl": duration("1h", [SECOND, 30 * 24 * HOUR], "How long a result is kept."),
  "results.principal_bytes": size(
    "256MiB",
    [KIB, 1_024 * GIB],
    "Most bytes of results kept of one caller; over it its oldest go. Of a larger answer the beginning is kept.",
  ),
  "results.max_bytes": size(
    "1GiB",
    [KIB, 1_024 * GIB],
    "Most bytes of results kept in all; over it the oldest of the caller with most go.",
  ),
  "results.encryption_key": path(
    "Secret that kept results are encrypted with (AES-256-GCM), by its reference: 32 bytes as 64 hexadecimal digits or as base64. While it is missing nothing is kept. Absent: they stand on the disk as they are, for the gateway's user alone.",
  ),
} as const satisfies Readonly<Record<string, Setting>>;

/** How long results may be for a model, and how they are kept. Durations in milliseconds, sizes in bytes. */
export interface ResultsSettings {
  /** In tokens; undefined: calls that do not say it have no budget. */
  readonly modelWindow: number | undefined;
  /** Default false. */
  readonly keep: boolean;
  /** Default 1 h. */
  readonly ttlMs: number;
  /** Of one principal. Default 256 MiB. */
  readonly principalBytes: number;
  /** Of all. Default 1 GiB. */
  readonly maxBytes: number;
  /** Reference of a secret; undefined: results are not encrypted. */
  readonly encryptionKey: string | undefined;
}

/** Reads how results are kept. */
export function readResults(values: ReadonlyMap<string, JsonValue>): ResultsSettings {
  const number = (key: keyof typeof RESULTS_SETTINGS): number => Number(values.get(key));
  const key = values.get("results.encryption_key");
  return {
    modelWindow: values.has("results.model_window") ? number("results.model_window") : undefined,
    keep: values.get("results.keep") === true,
    ttlMs: number("results.ttl"),
    principalBytes: number("results.principal_bytes"),
    maxBytes: number("results.max_bytes"),
    encryptionKey: typeof key === "string" ? key : undefined,
  };
}
