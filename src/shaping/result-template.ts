import { isJsonArray, type JsonValue, stringifyJson } from "../core/json.ts";
import { type FieldPath, followPath, parseFieldPath } from "./field-path.ts";

/** Text with places for fields. */
export type ResultTemplate = readonly (string | FieldPath)[];

/**
 * Parses a template: `{path}` stands for a field of the result, `{{` and `}}` for braces. `undefined` where a brace
 * stands alone or holds no path.
 */
export function parseResultTemplate(text: string): ResultTemplate | undefined {
  const parts: (string | FieldPath)[] = [];
  for (const [piece] of text.matchAll(/\{\{|\}\}|\{[^{}]*\}?|[^{}]+|\}/g)) {
    if (piece === "{{" || piece === "}}") parts.push(piece.slice(1));
    else if (!/[{}]/.test(piece)) parts.push(piece);
    else {
      const path = piece.endsWith("}") ? parseFieldPath(piece.slice(1, -1)) : undefined;
      if (path === undefined) return undefined;
      parts.push(path);
    }
  }
  return parts;
}

/** The text of a result: of a list a line an item. What is null or is not there leaves its place empty. */
export function fillTemplate(template: ResultTemplate, value: JsonValue): string {
  const fill = (item: JsonValue): string =>
    template.map((part) => (typeof part === "string" ? part : fieldText(item, part))).join("");
  return isJsonArray(value) ? value.map(fill).join("\n") : fill(value);
}

function fieldText(value: JsonValue, path: FieldPath): string {
  const found = followPath(value, path);
  if (!found.found || found.value === null) return "";
  return typeof found.value === "string" ? found.value : stringifyJson(found.value);
}
