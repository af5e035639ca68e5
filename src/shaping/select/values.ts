import { isJsonArray, isJsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import type { Budget } from "./budget.ts";

/** A type of JMESPath. */
export type ValueType = "null" | "boolean" | "number" | "string" | "array" | "object";

/** The type of a value; an integer beyond 2^53 is a number too. */
export function typeOf(value: JsonValue): ValueType {
  if (value === null) return "null";
  if (isNumber(value)) return "number";
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "boolean";
  return isJsonArray(value) ? "array" : "object";
}

/** Whether a value is a number, of any size. */
export function isNumber(value: JsonValue): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** What counts as true: all but null, false and what is empty. */
export function isTruthy(value: JsonValue): boolean {
  if (value === null || value === false || value === "") return false;
  if (isJsonArray(value)) return value.length > 0;
  return !isJsonObject(value) || Object.keys(value).length > 0;
}

/** Whether two values are equal, numbers by what they are worth. */
export function isEqual(a: JsonValue, b: JsonValue, budget: Budget): boolean {
  budget.spend(1);
  if (isNumber(a) && isNumber(b)) return !(a < b) && !(a > b);
  if (isJsonArray(a)) {
    return isJsonArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i] ?? null, budget));
  }
  if (isJsonObject(a)) {
    if (!isJsonObject(b)) return false;
    const names = Object.keys(a);
    return (
      names.length === Object.keys(b).length &&
      names.every((name) => {
        const other = ownValue(b, name);
        return other !== undefined && isEqual(a[name] ?? null, other, budget);
      })
    );
  }
  return a === b;
}

/** Takes a step for every value within, as often as it stands there: a value may hold another many times over. */
export function walk(value: JsonValue, budget: Budget): void {
  budget.spend(typeof value === "string" ? 1 + Math.ceil(value.length / 64) : 1);
  if (isJsonArray(value)) for (const item of value) walk(item, budget);
  else if (isJsonObject(value)) for (const name of Object.keys(value)) walk(value[name] ?? null, budget);
}
