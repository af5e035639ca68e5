import { isJsonArray, isJsonObject, type JsonValue, stringifyJson } from "../../core/json.ts";
import { excerpt, flatLine } from "./excerpt.ts";
import type { Question } from "./question.ts";

/** Names of fields that say what a thing is, how it stands and what went wrong. */
const TELLING =
  /^(?:id|key|name|title|label|subject|type|kind|state|status|action|result|reason|message|summary|error|errors|code|severity|level|version|ref|count|total|number|amount|price|login|email|date|time)$/i;

/** Fewest numbers of which the extremes are told. */
const MANY = 20;

/** Names that end like this say what the ones above say. */
const TELLING_END = /(?:_id|Id|_at|At|_name|Name|_count|Count|_status|Status|_type|Type|_date|Date|_total|Total)$/;

/** A value that holds no others. */
export type Scalar = null | boolean | number | bigint | string;

/** Whether a value holds no others. */
export function isScalar(value: JsonValue | undefined): value is Scalar {
  return value !== undefined && (value === null || typeof value !== "object");
}

/** A scalar as text: a string without quotes where it cannot be taken for anything else. */
export function scalarText(value: Scalar, width: number, question?: Question): string {
  if (typeof value !== "string") return stringifyJson(value);
  const text = excerpt(flatLine(value), width, question);
  if (/^[\p{L}\p{N}_./@…#*(<{$~^-][^\p{Cc}"`,;{}[\]]*$/u.test(text) && !isAmbiguous(text)) return text;
  return JSON.stringify(text);
}

/** A value in few words: of a list of scalars its first ones, of others how many they hold. */
export function valueText(value: JsonValue, width: number, question?: Question): string {
  if (isScalar(value)) return scalarText(value, width, question);
  if (isJsonArray(value)) return listText(value, width, question);
  return isJsonObject(value) ? `{${Object.keys(value).length} fields}` : "";
}

/** A list of scalars: as many as fit, and how many there are where some do not. */
function listText(list: readonly JsonValue[], width: number, question?: Question): string {
  if (!list.every(isScalar)) return `[${list.length} items]`;
  const shown: string[] = [];
  let used = 2;
  for (const item of list) {
    const text = scalarText(item, Math.max(12, Math.min(60, width)), question);
    used += text.length + 2;
    if (used > width && shown.length > 0) break;
    shown.push(text);
  }
  const more = shown.length < list.length ? `, … ${list.length} items${extremes(list)}` : "";
  return `[${shown.join(", ")}${more}]`;
}

/** The least and the greatest of many numbers; empty: they are few, or not all of them are numbers. */
function extremes(list: readonly JsonValue[]): string {
  const [first] = list;
  if (list.length < MANY || (typeof first !== "number" && typeof first !== "bigint")) return "";
  let least = first;
  let most = first;
  for (const item of list) {
    if (typeof item !== "number" && typeof item !== "bigint") return "";
    if (item < least) least = item;
    if (item > most) most = item;
  }
  return `, min ${stringifyJson(least)}, max ${stringifyJson(most)}`;
}

/** Whether a bare string would look like another type, or like a name with its value. */
function isAmbiguous(text: string): boolean {
  return /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(text) || /: |^- |\s$/.test(text) || text === "";
}

/** How little a value says by its form: 0 for plain words and numbers, more for what machines write for machines. */
export function dullness(value: JsonValue): number {
  if (value === null || value === "" || value === false) return 3;
  if (typeof value !== "string") return isJsonArray(value) && value.length === 0 ? 3 : 0;
  if (/^[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(value)) return 5;
  // A long word of letters and digits without any sense: a key, a hash, base64.
  if (value.length >= 20 && !/\s/.test(value) && /\d/.test(value) && /^[\w+/=-]+$/.test(value)) return 2;
  return 0;
}

/** How much a field says by its name: what a thing is and how it stands most, times and parts of names less. */
export function telling(name: string): number {
  if (TELLING.test(name)) return 2.5;
  return TELLING_END.test(name) ? 1.2 : 0;
}
