import { DURATION_SCHEMA, formatDuration } from "../core/durations.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { ownValue } from "../core/json.ts";
import { SIZE_SCHEMA } from "./sizes.ts";

/** One setting of gateway.yaml or of a declaration. */
export interface Setting {
  readonly schema: JsonObject;
  /** What stands in where the file is silent, as it would be written there; absent: nothing does. */
  readonly standard?: JsonValue;
  /** How the value becomes a number: milliseconds of a duration, bytes of a size. */
  readonly quantity?: "duration" | "size";
  /** What that number may be. */
  readonly range?: readonly [min: number, max: number];
}

/** A setting that is a text, not empty. */
export function text(standard: string, description: string): Setting & { readonly standard: string } {
  return { schema: { type: "string", minLength: 1, description }, standard };
}

/** A setting that names a file. */
export function path(description: string): Setting {
  return { schema: { type: "string", minLength: 1, description } };
}

/** A setting that is a duration; the range in milliseconds. */
export function duration(standard: string | undefined, range: readonly [number, number], description: string): Setting {
  const [min, max] = range.map(formatDuration);
  const schema = { ...DURATION_SCHEMA, description: `${description} ${min} to ${max}.` };
  return { schema, quantity: "duration", range, ...(standard === undefined ? {} : { standard }) };
}

/** A setting that is a whole number. */
export function count([minimum, maximum]: readonly [number, number], description: string): Setting {
  return { schema: { type: "integer", minimum, maximum, description } };
}

/** A setting that is a number of bytes. */
export function size(standard: string, range: readonly [number, number], description: string): Setting {
  return { schema: { ...SIZE_SCHEMA, description }, quantity: "size", standard, range };
}

/** How {@link settingsSchema} makes its schema. */
export interface SettingsSchemaOptions {
  /** Descriptions of the mappings by dotted key, the outermost under the empty one. */
  readonly sections: Readonly<Record<string, string>>;
  /** Whether to say what stands in where the file is silent. */
  readonly defaults: boolean;
}

/** JSON Schema of the mapping that holds those settings whose dotted keys begin with the prefix. */
export function settingsSchema(
  settings: Readonly<Record<string, Setting>>,
  prefix: string,
  options: SettingsSchemaOptions,
): JsonObject & { readonly properties: JsonObject } {
  const properties: Record<string, JsonObject> = {};
  for (const [key, { schema, standard }] of Object.entries(settings)) {
    if (!key.startsWith(prefix)) continue;
    const [name = "", ...deeper] = key.slice(prefix.length).split(".");
    const leaf = standard === undefined || !options.defaults ? schema : { ...schema, default: standard };
    properties[name] ??= deeper.length === 0 ? leaf : settingsSchema(settings, `${prefix}${name}.`, options);
  }
  const description = ownValue(options.sections, prefix.slice(0, -1));
  return {
    type: "object",
    ...(description === undefined ? {} : { description }),
    properties,
    additionalProperties: false,
  };
}
