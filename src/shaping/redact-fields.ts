import type { ContentPart, UpstreamResult } from "../core/call.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, stringifyJson } from "../core/json.ts";
import { jsonIn } from "./read-value.ts";

const MASK = "***";

/** A field to mask: its own name last, before it those it stands in, in lower case. */
type FieldNames = readonly string[];

/**
 * Masks the values of fields, wherever they stand in an answer's JSON, also where a text of it is JSON. Names are the
 * same in upper and lower case; `card.number` is each `number` of a `card`, lists in between gone through.
 */
export function createRedactFields(fields: readonly string[]): (result: UpstreamResult) => UpstreamResult {
  if (fields.length === 0) return (result) => result;
  const wanted = fields.map((field) => field.toLowerCase().split("."));
  return (result) => {
    const mask = new FieldMask(wanted);
    const content = result.content.map((part) => maskPart(part, mask));
    const value = result.value === undefined ? undefined : mask.value(result.value, []);
    if (mask.masked.size === 0) return result;
    const names = [...mask.masked].join(", ");
    const notice = {
      reason: "MASKED" as const,
      message: `Values of fields that are not to be shown stand as ***: ${names}.`,
    };
    return {
      ...result,
      content,
      ...(value === undefined ? {} : { value }),
      notices: [...(result.notices ?? []), notice],
    };
  };
}

function maskPart(part: ContentPart, mask: FieldMask): ContentPart {
  if (part.type !== "text" || !/^\s*[[{]/.test(part.text)) return part;
  const said = jsonIn(part.text);
  const clean = said === undefined ? undefined : mask.value(said, []);
  return clean === undefined || clean === said ? part : { ...part, text: stringifyJson(clean) };
}

class FieldMask {
  /** The fields, as they were declared, of which a value was masked. */
  readonly masked = new Set<string>();
  readonly #wanted: readonly FieldNames[];

  constructor(wanted: readonly FieldNames[]) {
    this.#wanted = wanted;
  }

  /** The value itself where there is nothing to mask. */
  value(value: JsonValue, path: readonly string[]): JsonValue {
    if (isJsonArray(value)) {
      const items = value.map((item) => this.value(item, path));
      return items.some((item, i) => item !== value[i]) ? items : value;
    }
    return isJsonObject(value) ? this.#object(value, path) : value;
  }

  #object(object: JsonObject, path: readonly string[]): JsonObject {
    let changed = false;
    const entries = Object.entries(object).map(([key, value]): [string, JsonValue] => {
      const place = [...path, key.toLowerCase()];
      const field = this.#wanted.find((names) => endsWith(place, names));
      if (field !== undefined && value !== MASK) this.masked.add(field.join("."));
      const clean = field === undefined ? this.value(value, place) : MASK;
      changed ||= clean !== value;
      return [key, clean];
    });
    return changed ? Object.fromEntries(entries) : object;
  }
}

function endsWith(place: readonly string[], names: FieldNames): boolean {
  const from = place.length - names.length;
  return from >= 0 && names.every((name, i) => place[from + i] === name);
}
