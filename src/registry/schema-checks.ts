import { ownList } from "../config/own-values.ts";
import { pathText } from "../config/wording.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { jsonPointer, ownValue } from "../core/json.ts";
import { subschemas } from "./schema-keywords.ts";
import { misfit, typeMisfit } from "./value-fit.ts";

/** Most examples of one schema that are held against it. */
const MAX_EXAMPLES = 100;

/** Pairs of keywords of which the first must not be over the second. */
const RANGES = [
  { min: "minimum", max: "maximum" },
  { min: "minLength", max: "maxLength" },
  { min: "minItems", max: "maxItems" },
] as const;

/**
 * Finds values that a schema holds and that do not fit it: a `default` that no call could use, an `enum` entry that
 * can never match, an example that misleads, a range without room. `default: null` stands for no default in many
 * generated schemas; the short form refuses it (`nullDefault` false).
 */
export function checkSchemaValues(schema: JsonObject, pointer: string, nullDefault: boolean): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  checkInto(issues, schema, { pointer: () => pointer, nullDefault });
  return issues;
}

interface CheckPlace {
  /** Of the schema; asked for where there is an issue. */
  readonly pointer: () => string;
  readonly nullDefault: boolean;
}

function checkInto(issues: ConfigIssue[], schema: JsonObject, { pointer, nullDefault }: CheckPlace): void {
  const add = (steps: readonly (string | number)[], why: string | undefined): void => {
    if (why === undefined) return;
    const at = pointer() + jsonPointer(steps);
    issues.push({ pointer: at, message: `${pathText(at)}: ${why}` });
  };
  checkOwn(schema, nullDefault, add);
  for (const [steps, part] of subschemas(schema)) {
    checkInto(issues, part, { pointer: () => pointer() + jsonPointer(steps), nullDefault });
  }
}

function checkOwn(
  schema: JsonObject,
  nullDefault: boolean,
  add: (steps: readonly (string | number)[], why: string | undefined) => void,
): void {
  const preset = ownValue(schema, "default");
  if (preset !== undefined && !(preset === null && nullDefault)) add(["default"], misfit(preset, schema));
  ownList(schema, "enum")?.forEach((value, i) => add(["enum", i], typeMisfit(value, schema)));
  const constant = ownValue(schema, "const");
  if (constant !== undefined) add(["const"], typeMisfit(constant, schema));
  const examples = ownList(schema, "examples");
  examples?.slice(0, MAX_EXAMPLES).forEach((value, i) => add(["examples", i], misfit(value, schema)));
  for (const { min, max } of RANGES) {
    const least = ownValue(schema, min);
    if (least !== undefined) add([min], emptyRange(least, ownValue(schema, max), max));
  }
}

function emptyRange(least: JsonValue | undefined, most: JsonValue | undefined, max: string): string | undefined {
  return isNumeric(least) && isNumeric(most) && least > most ? `${least} is over \`${max}\` ${most}` : undefined;
}

function isNumeric(value: JsonValue | undefined): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}
