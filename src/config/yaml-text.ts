import type { JsonValue } from "../core/json.ts";
import { stringifyJson } from "../core/json.ts";

/** Text that YAML reads as itself without quotes: it begins with a letter and holds no sign that means something. */
const PLAIN = /^\p{L}(?:[\p{L}\p{M}\p{N} _./()，。；：、（）-]*[\p{L}\p{M}\p{N}_.)，。；：、（）])?$/u;

/** Words that YAML reads as something else than text, now or in version 1.1. */
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** A value as YAML text on one line: JSON, which is YAML too, but for plain words. */
export function yamlText(value: JsonValue): string {
  return typeof value === "string" && PLAIN.test(value) && !RESERVED.test(value) ? value : stringifyJson(value);
}
