import { formatDuration, parseDuration } from "../core/durations.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonObject, ownValue } from "../core/json.ts";
import type { Setting } from "./setting.ts";
import { parseSize } from "./sizes.ts";

/** Settings that were read. */
export interface ReadSettings<K extends string> {
  /** By dotted key; durations in milliseconds, sizes in bytes. What stands nowhere is absent. */
  readonly values: Map<K, JsonValue>;
  /** What cannot be taken, by dotted key: what was expected and what was got. */
  readonly problems: Map<K, string>;
}

/**
 * Reads settings from a mapping that their schema has passed.
 *
 * @param fill whether what the settings have as standard stands in where the mapping is silent.
 */
export function readSettings<K extends string>(
  known: Readonly<Record<K, Setting>>,
  from: JsonObject,
  { fill }: { readonly fill: boolean },
): ReadSettings<K> {
  const read: ReadSettings<K> = { values: new Map(), problems: new Map() };
  for (const key of settingKeys(known)) {
    const setting = known[key];
    const value = quantity(lookUp(from, key) ?? (fill ? setting.standard : undefined), setting);
    if (value !== undefined) read.values.set(key, value);
    const problem = rangeProblem(value, setting);
    if (problem !== undefined) read.problems.set(key, problem);
  }
  return read;
}

/** The dotted keys of a table of settings. */
export function settingKeys<K extends string>(known: Readonly<Record<K, Setting>>): readonly K[] {
  return Object.keys(known) as K[];
}

/** The value under a dotted key; `undefined` where it stands nowhere. */
function lookUp(from: JsonObject, key: string): JsonValue | undefined {
  let at: JsonValue | undefined = from;
  for (const name of key.split(".")) at = at !== undefined && isJsonObject(at) ? ownValue(at, name) : undefined;
  return at;
}

/** The value as a number where the setting is a quantity. The schema has seen to it that it can be read. */
function quantity(value: JsonValue | undefined, setting: Setting): JsonValue | undefined {
  if (setting.quantity === "duration") return typeof value === "string" ? parseDuration(value) : undefined;
  return setting.quantity === "size" ? parseSize(value) : value;
}

function rangeProblem(value: JsonValue | undefined, setting: Setting): string | undefined {
  if (setting.range === undefined || typeof value !== "number") return undefined;
  const [min, max] = setting.range;
  if (value >= min && value <= max) return undefined;
  const word = (limit: number): string => (setting.quantity === "duration" ? formatDuration(limit) : `${limit} bytes`);
  return `expected ${word(min)} to ${word(max)}, got ${word(value)}`;
}

/** What a section says of each of its names, under `SECTION.NAME`. */
export function namedSettings(
  section: string,
  parts: ReadonlyMap<string, ReadonlyMap<string, JsonValue>>,
): (readonly [string, JsonValue])[] {
  return [...parts].map(([name, values]) => [`${section}.${name}`, Object.fromEntries(values)] as const);
}
