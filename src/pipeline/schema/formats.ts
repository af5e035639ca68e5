import type { Format as AjvFormat } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";

/** A format that is checked. */
export interface Format {
  /** What values it is about. */
  readonly type: "string" | "number";
  has(value: unknown): boolean;
}

/**
 * Longest text held against a format, in characters; a longer one does not have it. Measured on hostile text: `url`
 * takes time in proportion to the square of the length or worse, `regex` compiles its text, the others are linear.
 */
const MAX_LENGTH = { url: 2_048, regex: 1_000, byte: Number.POSITIVE_INFINITY } as const;
const MAX_LENGTH_ELSE = 65_536;

/** The formats that are checked: those of ajv-formats. All others mean nothing. */
export const FORMATS: Readonly<Record<string, Format>> = Object.fromEntries(
  Object.entries(fullFormats).flatMap(([name, format]) => {
    const read = formatOf(name, format);
    return read === undefined ? [] : [[name, read]];
  }),
);

function formatOf(name: string, format: AjvFormat): Format | undefined {
  if (format === true || typeof format === "string") return undefined;
  if (format instanceof RegExp || typeof format === "function") return textFormat(name, format);
  const { validate, type = "string" } = format;
  if (type === "number")
    return { type, has: (value) => typeof validate === "function" && validate(value as never) === true };
  return typeof validate === "string" ? undefined : textFormat(name, validate as RegExp | ((text: string) => boolean));
}

function textFormat(name: string, test: RegExp | ((text: string) => unknown)): Format {
  const max = maxLength(name);
  const holds = test instanceof RegExp ? (text: string) => test.test(text) : (text: string) => Boolean(test(text));
  return { type: "string", has: (value) => typeof value === "string" && value.length <= max && holds(value) };
}

function maxLength(name: string): number {
  return name === "url" || name === "regex" || name === "byte" ? MAX_LENGTH[name] : MAX_LENGTH_ELSE;
}
