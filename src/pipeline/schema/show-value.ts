import { type JsonValue, jsonTypeName, stringifyJson } from "../../core/json.ts";
import { wellFormed } from "../../core/text.ts";

/** Most characters of a value in a message. */
const MAX_SHOWN = 60;

/** A value as a message shows it: its type and at most 60 characters of it, such as `string "5"`. */
export function showValue(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (typeof value === "object") return `object of ${Object.keys(value).length} keys`;
  return `${jsonTypeName(value)} ${showPlain(value)}`;
}

/** At most 60 characters of a value's JSON text. */
export function showPlain(value: JsonValue): string {
  if (typeof value === "string") return shortText(stringifyJson(value.slice(0, MAX_SHOWN + 1)), MAX_SHOWN);
  return shortText(stringifyJson(value), MAX_SHOWN);
}

/** The text, or its beginning and `…` where it is longer than `max` characters; well-formed either way. */
export function shortText(text: string, max: number): string {
  return wellFormed(text.length <= max ? text : `${text.slice(0, max - 1)}…`);
}
