import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject, ownValue } from "../core/json.ts";

/** The text under a key; empty where there is none. */
export function ownText(object: JsonObject, key: string): string {
  const value = ownValue(object, key);
  return typeof value === "string" ? value : "";
}

/** The mapping under a key; `undefined` where there is none. */
export function ownObject(object: JsonObject, key: string): JsonObject | undefined {
  const value = ownValue(object, key);
  return value !== undefined && isJsonObject(value) ? value : undefined;
}

/** The list under a key; `undefined` where there is none. */
export function ownList(object: JsonObject, key: string): readonly JsonValue[] | undefined {
  const value: unknown = ownValue(object, key);
  return Array.isArray(value) ? (value as readonly JsonValue[]) : undefined;
}
