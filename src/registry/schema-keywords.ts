import type { JsonObject } from "../core/json.ts";
import { isJsonArray, isJsonObject } from "../core/json.ts";
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
  const found: (readonly [steps: Steps, schema: JsonObject])[] = [];
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword];
    if (typeof value !== "object" || value === null) continue;
    const holding = schemaHolding(keyword);
    if (holding === "none") continue;
    if (!isJsonArray(value) && holding === "schemas") {
      if (isJsonObject(value)) found.push([[keyword], value]);
      continue;
    }
    for (const [step, part] of isJsonArray(value) ? value.entries() : Object.entries(value)) {
      if (isJsonObject(part)) found.push([[keyword, step], part]);
    }
  }
  return found;
}
