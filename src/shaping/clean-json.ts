import { isJsonArray, isJsonObject, type JsonValue, stringifyJson } from "../core/json.ts";
import type { Redactor } from "../core/secrets.ts";
import { wellFormed } from "../core/text.ts";

/** How JSON text writes half of a surrogate pair that stands alone. */
const LONE_SURROGATE = /\\ud[89a-f]/;

/** A JSON value that may leave the gateway. */
export interface CleanJson {
  readonly value: JsonValue;
  readonly text: string;
}

/** A value and its JSON text, secrets masked and every string well-formed. It is valid JSON even where a number was a secret. */
export function cleanJson(value: JsonValue, redactor: Redactor): CleanJson {
  const text = stringifyJson(value);
  // Nearly every result is clean, and a look at its text is far quicker than a walk through it.
  if (redactor.text(text) === text && !LONE_SURROGATE.test(text)) return { value, text };
  const clean = cleanValue(value, redactor);
  return { value: clean, text: stringifyJson(clean) };
}

function cleanValue(value: JsonValue, redactor: Redactor): JsonValue {
  if (typeof value === "string") return redactor.text(wellFormed(value));
  if (typeof value === "number" || typeof value === "bigint") {
    const digits = String(value);
    const masked = redactor.text(digits);
    return masked === digits ? value : masked;
  }
  if (isJsonArray(value)) return value.map((item) => cleanValue(item, redactor));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redactor.text(wellFormed(key)), cleanValue(item, redactor)]),
  );
}
