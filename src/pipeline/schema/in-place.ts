import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { DEFS, KEYWORDS } from "./keywords.ts";

/** Most schemas that one value may have to be held against. */
const MAX_ALTERNATIVES = 1_000;

/** Most schemas for one value, one inside the other. */
const MAX_CHAIN = 100;

/**
 * Looks at how many schemas one value is held against: through `allOf`, `anyOf`, `oneOf`, `$ref` and the like they
 * multiply, or lead back to themselves and never end. Takes a schema as the reader makes it.
 */
export function inPlaceProblem(root: JsonObject): string | undefined {
  const defs = ownValue(root, "$defs");
  const targets = isJsonObject(defs) ? defs : {};
  const weights = new Map<JsonObject, number>();
  const open = new Set<JsonObject>();
  let problem: string | undefined;

  const weigh = (schema: JsonObject): number => {
    const known = weights.get(schema);
    if (known !== undefined) return known;
    if (open.has(schema)) problem ??= "schema too complex: a $ref leads back to itself without a property between";
    if (open.size > MAX_CHAIN)
      problem ??= `schema too complex: more than ${MAX_CHAIN} schemas for one value, one inside the other`;
    if (problem !== undefined) return 0;
    open.add(schema);
    let weight = 1;
    for (const part of partsInPlace(schema, targets)) weight += weigh(part);
    open.delete(schema);
    weights.set(schema, weight);
    if (weight > MAX_ALTERNATIVES)
      problem ??= `schema too complex: anyOf, oneOf and allOf multiply to more than ${MAX_ALTERNATIVES} alternatives`;
    return weight;
  };

  for (const schema of [root, ...Object.values(targets)]) if (isJsonObject(schema)) weigh(schema);
  return problem;
}

function partsInPlace(schema: JsonObject, targets: JsonObject): JsonObject[] {
  const parts: JsonValue[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const shape = KEYWORDS.get(keyword);
    if (shape === "here") parts.push(value);
    else if (shape === "here-list" || shape === "here-map") parts.push(...Object.values(value as JsonObject));
  }
  const ref = ownValue(schema, "$ref");
  if (typeof ref === "string") parts.push(ownValue(targets, ref.slice(DEFS.length)) ?? true);
  return parts.filter(isJsonObject);
}
