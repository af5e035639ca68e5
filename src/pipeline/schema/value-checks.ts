import { canonicalJson, isJsonArray, isJsonObject, type JsonValue } from "../../core/json.ts";
import { codePointCount } from "../../core/text.ts";
import { type Check, exactValue, type Keyword, type MakeCheck, type Place, type Run, textOf } from "./check.ts";
import { FORMATS } from "./formats.ts";

/** Characters from which to count them takes some time. */
const LONG_TEXT = 10_000;

/** Keywords that look at a value and at nothing below it, in the order in which their errors are told. */
export const VALUE_CHECKS: ReadonlyMap<string, MakeCheck> = new Map<string, MakeCheck>([
  ["type", typeCheck],
  ["minimum", bound((value, limit) => value >= limit)],
  ["maximum", bound((value, limit) => value <= limit)],
  ["exclusiveMinimum", bound((value, limit) => value > limit)],
  ["exclusiveMaximum", bound((value, limit) => value < limit)],
  ["multipleOf", bound(isMultiple)],
  ["minLength", lengthCheck((text, limit) => text.length >= limit && hasCodePoints(text, limit))],
  ["maxLength", lengthCheck((text, limit) => text.length <= limit || !hasCodePoints(text, limit + 1))],
  ["pattern", patternCheck],
  ["format", formatCheck],
  ["const", (keyword) => oneOfCheck(keyword, [keyword.value])],
  ["enum", (keyword) => oneOfCheck(keyword, keyword.value as readonly JsonValue[])],
]);

function typeCheck(keyword: Keyword): Check {
  const types = [keyword.value].flat();
  return (place, run) => {
    if (!types.some((type) => isOfType(place.value, type))) keyword.fail(place, run);
  };
}

function isOfType(value: JsonValue, type: JsonValue | undefined): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return isJsonArray(value);
    case "object":
      return isJsonObject(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/** A check of numbers, with all the digits of 64-bit integers. */
function bound(holds: (value: number | bigint, limit: number | bigint) => boolean): MakeCheck {
  return (keyword) => (place, run) => {
    if (typeof place.value !== "number") return;
    const value = exactValue(place, run) as number | bigint;
    if (!holds(value, keyword.value as number | bigint)) keyword.fail(place, run);
  };
}

/** `multipleOf: 0.01` takes 19.99. */
function isMultiple(value: number | bigint, of: number | bigint): boolean {
  if (Number.isInteger(Number(value)) && Number.isInteger(Number(of))) return BigInt(value) % BigInt(of) === 0n;
  const quotient = Number(value) / Number(of);
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}

function lengthCheck(holds: (text: string, limit: number) => boolean): MakeCheck {
  return (keyword) => {
    const limit = Number(keyword.value);
    return (place, run) => {
      if (typeof place.value !== "string") return;
      if (place.value.length > LONG_TEXT) run.meter.look();
      if (!holds(place.value, limit)) keyword.fail(place, run, { limit });
    };
  };
}

/** Whether a text has at least so many code points; looked at closely only where its length does not tell. */
function hasCodePoints(text: string, count: number): boolean {
  return text.length >= count * 2 || codePointCount(text) >= count;
}

function patternCheck(keyword: Keyword): Check {
  const pattern = keyword.patterns.get(textOf(keyword.value));
  return (place, run) => {
    if (typeof place.value !== "string" || pattern === undefined) return;
    run.meter.step();
    if (!pattern.test(place.value, run.meter)) keyword.fail(place, run);
  };
}

function formatCheck(keyword: Keyword): Check | undefined {
  const name = textOf(keyword.value);
  const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
  if (format === undefined) return undefined;
  return (place, run) => {
    if (typeof place.value === format.type && !format.has(place.value)) keyword.fail(place, run, { format: name });
  };
}

function oneOfCheck(keyword: Keyword, allowed: readonly JsonValue[]): Check {
  const simple = new Set<JsonValue>(allowed.filter((value) => !isContainer(value)));
  const containers = new Set(allowed.filter(isContainer).map(canonicalJson));
  return (place, run) => {
    const found = isContainer(place.value)
      ? containers.size > 0 && containers.has(containerText(place.value, run))
      : simple.has(exactValue(place, run));
    if (!found) keyword.fail(place, run);
  };
}

/** A container as text that equal ones share. To make it means to walk through the container. */
function containerText(value: JsonValue, { meter, values }: Run): string {
  meter.look();
  return canonicalJson(values.exactDeep(value));
}

function isContainer(value: JsonValue): boolean {
  return typeof value === "object" && value !== null;
}

/** A text that no two different items of an array share, or the item itself where it is no container. */
export function identityOf(list: Place, index: number, item: JsonValue, run: Run): JsonValue {
  if (isContainer(item)) return containerText(item, run);
  // With a mark before it a text cannot be taken for that of a container.
  return typeof item === "string" ? `"${item}` : exactValue({ value: item, parent: list, key: index }, run);
}
