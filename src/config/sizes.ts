import type { JsonObject } from "../core/json.ts";

const UNITS: ReadonlyMap<string, number> = new Map([
  ["B", 1],
  ["KB", 1e3],
  ["MB", 1e6],
  ["GB", 1e9],
  ["KiB", 1024],
  ["MiB", 1024 ** 2],
  ["GiB", 1024 ** 3],
]);

const SIZE = /^(\d{1,12}) ?(B|KB|MB|GB|KiB|MiB|GiB)$/;

/** JSON Schema of a size: bytes as an integer, or text such as `16KB` (1,000 bytes) or `4MiB` (1,048,576 bytes). */
export const SIZE_SCHEMA: JsonObject = {
  type: ["integer", "string"],
  minimum: 1,
  pattern: SIZE.source,
  patternErrorMessage:
    "expected a size: bytes as an integer, or a number with B, KB, KiB, MB, MiB, GB or GiB, such as 4MiB",
  examples: ["4MiB", "16KB", 1_048_576],
};

/** Bytes of a size; `undefined` for what is no size. */
export function parseSize(size: unknown): number | undefined {
  if (typeof size === "number") return Number.isInteger(size) ? size : undefined;
  const found = typeof size === "string" ? SIZE.exec(size) : null;
  const unit = UNITS.get(found?.[2] ?? "");
  return unit === undefined ? undefined : Number(found?.[1]) * unit;
}
