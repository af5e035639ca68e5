import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject } from "../core/json.ts";
import { KEYWORDS } from "../pipeline/schema/keywords.ts";

type Steps = readonly (string | number)[];

/** Keywords that hold schemas by name and say nothing of a value by themselves. */
const DEFINITIONS: ReadonlySet<string> = new Set(["$defs", "definitions"]);

/** What a keyword holds: one schema or a list of them, schemas by name, or no schema. */
export function schemaHolding(keyword: string): "schemas" | "schemas-by-name" | "none" {
  const shape = DEFINITIONS.has(keyword) ? "map" : KEYWORDS.get(keyword);
  switch (shape) {
    case undefined:
    case "value":
    case "count":
      return "none";
    case "map":
    case "here-map":
    case "pattern-map":
      return "schemas-by-name";
    default:
      return "schemas";
  }
}

/** The schemas directly inside a schema, with the steps that lead to them. */
export function subschemas(schema: JsonObject): (readonly [steps: Steps, schema: JsonObject])[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    const holding = schemaHolding(keyword);
    if (holding === "none") return [];
    return candidates(keyword, value, holding === "schemas-by-name").flatMap(([steps, part]): [Steps, JsonObject][] => {
      return isJsonObject(part) ? [[steps, part]] : [];
    });
  });
}

function candidates(keyword: string, value: JsonValue, byName: boolean): [Steps, JsonValue][] {
  if (Array.isArray(value)) return value.map((part: JsonValue, i): [Steps, JsonValue] => [[keyword, i], part]);
  if (!byName || !isJsonObject(value)) return [[[keyword], value]];
  return Object.entries(value).map(([name, part]): [Steps, JsonValue] => [[keyword, name], part]);
}
