import type { Ajv } from "ajv";
import { canonicalJson, type JsonValue } from "../../core/json.ts";
import type { WorkMeter } from "./work-meter.ts";

/** Where the digits of integers beyond 2^53 are found while a check runs. */
export interface ExactValues {
  /** The value in a container, with all its digits. */
  exact(container: object | undefined, key: string | number, value: JsonValue): JsonValue;
  /** The value with all its digits at every depth. */
  exactDeep(value: JsonValue): JsonValue;
}

/** What ajv tells a keyword about the value. */
interface Context {
  readonly parentData: object | undefined;
  readonly parentDataProperty: string | number;
}

type Check = (value: JsonValue, context?: Context) => boolean;

/**
 * Replaces the keywords that compare values by ones that keep the digits of 64-bit integers. `uniqueItems` also takes
 * linear time then (that of ajv: the square of the length), and `multipleOf: 0.01` takes 19.99.
 */
export function replaceComparingKeywords(ajv: Ajv, current: () => ExactValues, meter: WorkMeter): void {
  const keywords: readonly (readonly [keyword: string, type: "number" | "array" | undefined, make: MakeCheck])[] = [
    ["minimum", "number", bound((value, limit) => value >= limit)],
    ["maximum", "number", bound((value, limit) => value <= limit)],
    ["exclusiveMinimum", "number", bound((value, limit) => value > limit)],
    ["exclusiveMaximum", "number", bound((value, limit) => value < limit)],
    ["multipleOf", "number", bound(isMultiple)],
    ["enum", undefined, (values) => equalsAny(values as readonly JsonValue[])],
    ["const", undefined, (value) => equalsAny([value])],
    ["uniqueItems", "array", (wanted) => (wanted === true ? allDiffer : () => true)],
  ];
  for (const [keyword, type, make] of keywords) {
    ajv.removeKeyword(keyword);
    ajv.addKeyword({
      keyword,
      errors: false,
      ...(type === undefined ? {} : { type }),
      compile(limit: JsonValue): Check {
        const check = make(limit);
        return (value, context) => {
          // To compare a container means to walk through it.
          if (isContainer(value)) meter.look();
          return check(current().exact(context?.parentData, context?.parentDataProperty ?? "", value), current());
        };
      },
    });
  }
}

type MakeCheck = (limit: JsonValue) => (value: JsonValue, values: ExactValues) => boolean;

function bound(holds: (value: number | bigint, limit: number | bigint) => boolean): MakeCheck {
  return (limit) => (value) => holds(value as number | bigint, limit as number | bigint);
}

function isMultiple(value: number | bigint, of: number | bigint): boolean {
  if (Number.isInteger(Number(value)) && Number.isInteger(Number(of))) return BigInt(value) % BigInt(of) === 0n;
  const quotient = Number(value) / Number(of);
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}

function equalsAny(allowed: readonly JsonValue[]): (value: JsonValue, values: ExactValues) => boolean {
  const simple = new Set<JsonValue>(allowed.filter((value) => !isContainer(value)));
  const containers = new Set(allowed.filter(isContainer).map(canonicalJson));
  return (value, values) => {
    if (!isContainer(value)) return simple.has(value);
    return containers.size > 0 && containers.has(canonicalJson(values.exactDeep(value)));
  };
}

function allDiffer(list: JsonValue, values: ExactValues): boolean {
  const seen = new Set<JsonValue>();
  const items = list as readonly JsonValue[];
  return items.every((item, i) => {
    // A JSON text as key cannot be taken for a string, which stands for itself with a mark before it.
    const key = isContainer(item) ? canonicalJson(values.exactDeep(item)) : values.exact(items, i, item);
    const marked = typeof key === "string" && !isContainer(item) ? `"${key}` : key;
    return !seen.has(marked) && seen.add(marked) !== undefined;
  });
}

function isContainer(value: JsonValue): boolean {
  return typeof value === "object" && value !== null;
}
