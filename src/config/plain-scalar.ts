import type { JsonValue } from "../core/json.ts";

/** Numbers whose value is beyond doubt, and texts that may be numbers of another form. */
const INTEGER = /^(?:0|-?[1-9]\d{0,14})$/;
const DECIMAL = /^-?\d{1,15}\.\d{1,15}$/;
const MAYBE_NUMBER = /^[-+.\d][\da-fA-FxXoO.+_-]*$/;

/** Words of the core schema. Source: https://yaml.org/spec/1.2.2/#1032-tag-resolution. */
const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
  ["~", null],
]);
const MAYBE_WORD = /^(?:true|false|null)$/i;
const PLAIN_WORD = /^[A-EG-MO-SU-Za-eg-mo-su-z]/;

/** The value of a plain scalar by the core schema; `undefined` for what may be a number or word of another form. */
export function plainValue(source: string): JsonValue | undefined {
  // As most do: begins with a letter that neither a number nor a word of the schema begins with.
  if (PLAIN_WORD.test(source)) return source;
  const word = WORDS.get(source);
  if (word !== undefined) return word;
  if (INTEGER.test(source) || DECIMAL.test(source)) return Number(source);
  return MAYBE_NUMBER.test(source) || MAYBE_WORD.test(source) ? undefined : source;
}
