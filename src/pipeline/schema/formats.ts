import type { Format } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";

/**
 * Longest text held against a format, in characters; a longer one does not have it. Measured on hostile text: `url`
 * takes time in proportion to the square of the length or worse, `regex` compiles its text, the others are linear.
 */
const MAX_LENGTH = { url: 2_048, regex: 1_000, byte: Number.POSITIVE_INFINITY } as const;
const MAX_LENGTH_ELSE = 65_536;

/** The formats that are checked: those of ajv-formats. All others mean nothing. */
export const FORMATS: Readonly<Record<string, Format>> = Object.fromEntries(
  Object.entries(fullFormats).map(([name, format]) => [name, bounded(format, maxLength(name))]),
);

function maxLength(name: string): number {
  return name === "url" || name === "regex" || name === "byte" ? MAX_LENGTH[name] : MAX_LENGTH_ELSE;
}

function bounded(format: Format, max: number): Format {
  if (format instanceof RegExp) return (text: string) => text.length <= max && format.test(text);
  if (typeof format === "function") return (text: string) => text.length <= max && format(text);
  return format;
}
