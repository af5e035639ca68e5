import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, stringifyJson } from "../core/json.ts";
import type { TextCleaner } from "./text-cleaner.ts";

/** A JSON value that may leave the gateway. */
export interface CleanJson {
  readonly value: JsonValue;
  readonly text: string;
}

/** A value and its JSON text, secrets masked and every string well-formed. It is valid JSON even where a number was a secret. */
export function cleanJson(value: JsonValue, cleaner: TextCleaner): CleanJson {
  const text = stringifyJson(value);
  // Nearly every result is clean, and a look at its text is far quicker than a walk through it. With an escape in it the
  // text is not what its strings are.
  if (!cleaner.byParts && !text.includes("\\") && cleaner.isClean(text)) return { value, text };
  const clean = cleanValue(value, cleaner);
  return { value: clean, text: clean === value ? text : stringifyJson(clean) };
}

/** The value itself where it is clean. */
function cleanValue(value: JsonValue, cleaner: TextCleaner): JsonValue {
  if (typeof value === "string") return cleaner.text(value);
  if (typeof value === "number" || typeof value === "bigint") {
    const digits = String(value);
    const masked = cleaner.text(digits);
    return masked === digits ? value : masked;
  }
  if (isJsonArray(value)) {
    const items = value.map((item) => cleanValue(item, cleaner));
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  return isJsonObject(value) ? cleanObject(value, cleaner) : value;
}

function cleanObject(object: JsonObject, cleaner: TextCleaner): JsonObject {
  let changed = false;
  const clean = new Map<string, JsonValue>();
  for (const [key, value] of Object.entries(object)) {
    const name = cleaner.text(key);
    const item = cleanValue(value, cleaner);
    changed ||= name !== key || item !== value;
    clean.set(freeName(name, clean), item);
  }
  return changed ? Object.fromEntries(clean) : object;
}

/** Two keys that are masked alike stay two. */
function freeName(name: string, taken: ReadonlyMap<string, JsonValue>): string {
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name} (${n})`;
  return free;
}
