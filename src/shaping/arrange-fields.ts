import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import type { FieldRules } from "../core/shaper.ts";

/** Gives a result the fields it should have. */
export type ArrangeFields = (value: JsonValue) => JsonValue;

/** The `fields` rule: lists are gone through, so that a name means the field of every item. */
export function createArrangeFields({ keep, drop, rename }: FieldRules): ArrangeFields {
  const kept = keep === undefined ? undefined : new Set(keep);
  const onTheWay = new Set(keep?.flatMap(ancestors));
  const dropped = new Set(drop);
  /** `whole`: an object above was kept with all it holds. */
  const arrange = (value: JsonValue, path: string, whole: boolean): JsonValue => {
    if (isJsonArray(value)) return value.map((item) => arrange(item, path, whole));
    return isJsonObject(value) ? Object.fromEntries(entries(value, path, whole)) : value;
  };
  const entries = (object: JsonObject, path: string, whole: boolean): [string, JsonValue][] =>
    Object.entries(object).flatMap(([name, value]): [string, JsonValue][] => {
      const here = path === "" ? name : `${path}.${name}`;
      const all = whole || kept === undefined || kept.has(here);
      if (dropped.has(here) || !(all || (onTheWay.has(here) && typeof value === "object"))) return [];
      const renamed = rename === undefined ? undefined : ownValue(rename, here);
      return [[typeof renamed === "string" ? renamed : name, arrange(value, here, all)]];
    });
  return (value) => arrange(value, "", false);
}

/** `a.b.c`: `a` and `a.b`. */
function ancestors(path: string): string[] {
  const names = path.split(".");
  return names.slice(0, -1).map((_, i) => names.slice(0, i + 1).join("."));
}
