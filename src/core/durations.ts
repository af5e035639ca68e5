import type { JsonObject } from "../core/json.ts";

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

const DURATION = /^(?=\d)(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9}(?:\.\d{1,3})?)s)?(?:(\d{1,9})ms)?$/;

/** JSON Schema of a duration, such as `3s`, `500ms`, `1m30s` or `2h`. */
export const DURATION_SCHEMA = {
  type: "string",
  pattern: DURATION.source,
  patternErrorMessage: "expected a duration with its unit, such as 500ms, 3s, 1m30s or 2h",
  "x-bare-number-unit": "s",
  examples: ["500ms", "3s", "1m30s", "2h"],
} satisfies JsonObject;

/** Milliseconds of a duration: hours, minutes, seconds, milliseconds, in this order; `undefined` for any other text. */
export function parseDuration(text: string): number | undefined {
  const found = DURATION.exec(text);
  if (found === null) return undefined;
  return Math.round(UNITS.reduce((sum, [, ms], i) => sum + Number(found[i + 1] ?? 0) * ms, 0));
}

/** A duration as {@link parseDuration} reads it, exact to the millisecond: `1m30s`. */
export function formatDuration(ms: number): string {
  let rest = Math.round(ms);
  let text = "";
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text === "" ? "0s" : text;
}
