import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  jsonTypeName,
  ownValue,
  pointerSteps,
  stringifyJson,
} from "../../core/json.ts";
import { queryInvalid, type ResultQuery } from "../../core/results.ts";
import { codePointCount, headIndex } from "../../core/text.ts";
import { followPath, parseFieldPath } from "../field-path.ts";

/** A part of a JSON value that fits a page, and the first entry that does not. */
export interface JsonPage {
  /** JSON text; of a long string its next characters as they are. */
  readonly text: string;
  readonly isJson: boolean;
  readonly nextOffset: number | undefined;
}

/**
 * The value at a path. What is too long for the page is given in parts: entries of a list or an object, characters of a
 * string. An entry that is too long for a page of its own is named and not shown.
 */
export function readJson(root: JsonValue, query: Extract<ResultQuery, { type: "json" }>, maxLength: number): JsonPage {
  const value = valueAt(root, query.path);
  const { offset, limit } = query;
  if (typeof value === "string") return textPage(value, offset, limit === 0 ? maxLength : Math.min(limit, maxLength));
  if (isJsonArray(value)) return entriesPage(listEntries(value), query, maxLength);
  if (isJsonObject(value)) return entriesPage(objectEntries(value), query, maxLength);
  return { text: stringifyJson(value), isJson: true, nextOffset: undefined };
}

/** The value at a path: a JSON pointer, or a dotted path, also with `$` before it. @throws GatewayError RESULT_QUERY_INVALID. */
export function valueAt(root: JsonValue, path: string, field = "json.path"): JsonValue {
  if (path === "" || path === "$") return root;
  if (path.startsWith("/")) return atPointer(root, path, field);
  // A list at the top has an index first, which a dotted path cannot begin with.
  const indexed = /^\$?(\[.*)$/.exec(path)?.[1];
  if (indexed !== undefined) return atPointer(root, indexed.replaceAll(/\[(\d+)\]|\.([^.[\]]+)/g, "/$1$2"), field);
  const dotted = parseFieldPath(path.replace(/^\$\./, ""));
  if (dotted === undefined) {
    throw queryInvalid(field, "is no path: write a JSON pointer such as /data/items/0, or names joined by dots");
  }
  const found = followPath(root, dotted);
  if (found.found) return found.value;
  throw nowhere(field, path, found.at === "" ? "the top" : found.at, found.value);
}

/** The value that a JSON pointer leads to. @throws GatewayError RESULT_QUERY_INVALID. */
function atPointer(root: JsonValue, pointer: string, field: string): JsonValue {
  const steps = pointerSteps(pointer);
  let here = root;
  for (const [i, step] of steps.entries()) {
    const next = isJsonArray(here)
      ? /^(?:0|[1-9]\d{0,8})$/.test(step)
        ? here[Number(step)]
        : undefined
      : isJsonObject(here)
        ? ownValue(here, step)
        : undefined;
    if (next === undefined) throw nowhere(field, pointer, jsonPointer(steps.slice(0, i)) || "the top", here);
    here = next;
  }
  return here;
}

function nowhere(field: string, path: string, at: string, value: JsonValue): Error {
  return queryInvalid(
    field,
    `\`${path.slice(0, 200)}\` leads nowhere: at ${at.slice(0, 200)} stands ${described(value)}`,
  );
}

/** What a value is, in a few words. */
function described(value: JsonValue): string {
  if (isJsonArray(value)) return `a list of ${value.length}`;
  if (!isJsonObject(value)) return `a value of type ${jsonTypeName(value)}`;
  const names = Object.keys(value);
  return `an object with ${names.slice(0, 20).join(", ").slice(0, 300)}${names.length > 20 ? ", …" : ""}`;
}

function textPage(text: string, offset: number, room: number): JsonPage {
  const from = headIndex(text, offset);
  const rest = text.slice(from);
  const end = headIndex(rest, room);
  const more = end < rest.length;
  return { text: rest.slice(0, end), isJson: false, nextOffset: more ? offset + room : undefined };
}

/** What a list or an object holds. */
interface Entries {
  readonly count: number;
  readonly brackets: readonly [string, string];
  at(index: number): { readonly prefix: string; readonly step: string; readonly value: JsonValue };
}

function listEntries(list: readonly JsonValue[]): Entries {
  const at: Entries["at"] = (index) => ({ prefix: "", step: String(index), value: list[index] ?? null });
  return { count: list.length, brackets: ["[", "]"], at };
}

function objectEntries(object: JsonObject): Entries {
  const names = Object.keys(object);
  const at: Entries["at"] = (index) => {
    const step = names[index] ?? "";
    return { prefix: `${stringifyJson(step)}:`, step, value: ownValue(object, step) ?? null };
  };
  return { count: names.length, brackets: ["{", "}"], at };
}

function entriesPage(
  entries: Entries,
  { path, offset, limit }: Extract<ResultQuery, { type: "json" }>,
  maxLength: number,
): JsonPage {
  const texts: string[] = [];
  const end = Math.min(entries.count, limit === 0 ? entries.count : offset + limit);
  let room = maxLength - 2;
  let at = offset;
  for (; at < end; at++) {
    const { prefix, step, value } = entries.at(at);
    const whole = prefix + stringifyJson(value);
    const length = codePointCount(whole);
    const text = length <= maxLength - 2 ? whole : prefix + stringifyJson(notShown(length, path, step));
    room -= Math.min(length, codePointCount(text)) + 1;
    if (room < 0 && texts.length > 0) break;
    texts.push(text);
  }
  const [open, close] = entries.brackets;
  return { text: open + texts.join(",") + close, isJson: true, nextOffset: at < entries.count ? at : undefined };
}

function notShown(length: number, path: string, step: string): string {
  const below = path === "" || path.startsWith("/");
  const place = below ? `${path}${jsonPointer([step])}` : `${path}.${step}`;
  return `[not shown: ${length} characters; read them with the path ${place}]`;
}
