import type { JsonValue } from "../core/json.ts";
import { pointerSteps, stringifyJson } from "../core/json.ts";
import { oneLine } from "../core/text.ts";
import type { LineIndex } from "./source-document.ts";

/** Most characters of a name or value that a message shows. */
const SHOWN = 60;

/** For a character that is half of a pair: no UTF-8 text can hold it. */
export const LONE_SURROGATE = "half of a surrogate pair, which is no character: write the whole one";

/** For a line that a tab indents. */
export const TAB_INDENT = "a tab as indentation, which YAML does not allow: use spaces";

/** Whether a text holds half of a surrogate pair, which UTF-8 cannot carry. */
export function holdsLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** Text for the middle of a one-line message: shortened, without line breaks and control characters. */
export function inline(text: string, limit = SHOWN): string {
  const cut = text.length > limit ? `${text.slice(0, limit).replace(/\p{Surrogate}$/u, "")}…` : text;
  return oneLine(cut);
}

/** A key as messages show it. */
export function keyText(name: string): string {
  return `\`${inline(name)}\``;
}

/** A pointer as messages show it: `` `params[0].name` ``; empty text for the whole document. */
export function pathText(pointer: string): string {
  const steps = pointerSteps(pointer);
  if (steps.length === 0) return "";
  const parts = steps.map((step, i) => {
    if (/^\d+$/.test(step)) return `[${step}]`;
    if (!/^[\p{L}\p{N}_$-]+$/u.test(step)) return `[${JSON.stringify(inline(step))}]`;
    return i === 0 ? inline(step) : `.${inline(step)}`;
  });
  return `\`${parts.join("")}\``;
}

/** A value as messages show it: `text "abc"`, `number 5`, `a list`. */
export function valueText(value: JsonValue): string {
  switch (typeof value) {
    case "string":
      return `text ${JSON.stringify(inline(value))}`;
    case "boolean":
      return String(value);
    case "object":
      return value === null ? "nothing" : Array.isArray(value) ? "a list" : "a mapping";
    default:
      return `number ${inline(stringifyJson(value))}`;
  }
}

/** For a key written twice, said at the second. */
export function writtenTwice(lines: LineIndex, name: string, first: number, second: number): string {
  const before = lines.position(first).line;
  const after = lines.position(second).line;
  const where = before === after ? `twice on line ${after}` : `twice, on lines ${before} and ${after}`;
  return `key ${keyText(name)} is written ${where}: keep one`;
}
