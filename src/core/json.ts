/**
 * JSON as the gateway carries it. Integers beyond the range a double keeps exactly are `bigint`, so that 64-bit ids
 * travel from the wire to an upstream and back with all their digits.
 */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject;

/** A JSON object. Only own keys count: never read it with `in` or through a prototype. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Deepest nesting the gateway accepts in arguments, declarations and structured results. */
export const MAX_JSON_DEPTH = 128;

declare global {
  interface JSON {
    /** Text that `JSON.stringify` writes as it stands. Source: https://github.com/tc39/proposal-json-parse-with-source. */
    rawJSON(text: string): unknown;
  }
}

/** The least number of digits an integer beyond 2^53 can have. */
const LONG_DIGITS = 16;

/** Whether the value is a JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether the value is a JSON array. */
export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** Reads an own property; `undefined` where there is none, also for names such as `constructor`. */
export function ownValue(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/**
 * Parses JSON text without rounding integers.
 *
 * @throws SyntaxError for malformed text, for nesting over {@link MAX_JSON_DEPTH} and for numbers no double can hold.
 */
export function parseJson(text: string): JsonValue {
  // The reviver is 10 times slower than a plain parse, so it runs only where a long number or an exponent stands.
  return JSON.parse(text, scan(text) ? exactNumber : undefined) as JsonValue;
}

/** Writes JSON text; the digits of a `bigint` stand in it as a plain number. */
export function stringifyJson(value: JsonValue, indent?: number): string {
  try {
    return JSON.stringify(value, undefined, indent);
  } catch (error) {
    // A `bigint` is refused with a TypeError. A replacer from the start would make every call several times slower.
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, rawBigint, indent);
  }
}

/** Writes JSON text with keys in one fixed order: equal values give equal text. */
export function canonicalJson(value: JsonValue): string {
  return stringifyJson(sortKeys(value));
}

/** JSON equality: `0` equals `0.0` and is not `"0"`; the order of keys does not count. */
export function jsonEqual(a: JsonValue, b: JsonValue): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  return canonicalJson(a) === canonicalJson(b);
}

/** The JSON type word of a value, as JSON Schema names it. */
export function jsonTypeName(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "bigint") return "integer";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** Joins steps to a JSON pointer. Source: RFC 6901. */
export function jsonPointer(steps: readonly (string | number)[]): string {
  let pointer = "";
  for (const step of steps) {
    const text = String(step);
    const isPlain = !text.includes("~") && !text.includes("/");
    pointer += `/${isPlain ? text : text.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  return pointer;
}

/** Splits a JSON pointer into its steps. Source: RFC 6901. */
export function pointerSteps(pointer: string): string[] {
  if (pointer === "") return [];
  const steps = pointer.slice(1).split("/");
  return pointer.includes("~") ? steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")) : steps;
}

function exactNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number") return value;
  const source = context?.source ?? "";
  if (!Number.isFinite(value)) throw new SyntaxError(`number ${source.slice(0, 40)} is out of range`);
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(source) ? value : BigInt(source);
}

/** A copy with its keys in order; twice as fast as writing the text here. */
function sortKeys(value: JsonValue): JsonValue {
  if (isJsonArray(value)) return value.map(sortKeys);
  if (!isJsonObject(value)) return value;
  const sorted: Record<string, JsonValue> = {};
  for (const name of Object.keys(value).toSorted()) {
    const member = value[name];
    if (member === undefined) continue;
    if (name === "__proto__") Object.defineProperty(sorted, name, { value: sortKeys(member), enumerable: true });
    else sorted[name] = sortKeys(member);
  }
  return sorted;
}

function rawBigint(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? JSON.rawJSON(value.toString()) : value;
}

/**
 * One pass over the text outside its strings: refuses deep nesting, since code that walks the parsed value recursively
 * would overflow the stack, and tells whether a number may stand there that a double does not hold exactly.
 */
function scan(text: string): boolean {
  let depth = 0;
  let digits = 0;
  let exact = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    digits = digitsAfter(digits, c);
    if (digits >= LONG_DIGITS) exact = true;
    if (c === 34) i = endOfString(text, i);
    else if (c === 91 || c === 123) {
      if (++depth > MAX_JSON_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_JSON_DEPTH} levels`);
    } else if (c === 93 || c === 125) depth--;
  }
  return exact;
}

/**
 * Whether an object in the text has a name twice, of which the parsed value has kept the last alone. `value` is what
 * {@link parseJson} made of the text.
 */
export function hasDuplicateNames(text: string, value: JsonValue): boolean {
  let colons = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 34) i = endOfString(text, i);
    else if (c === 58) colons++;
  }
  // Each name has one colon after it, and no other stands outside of strings.
  return colons !== countNames(value);
}

/** Quick, since every call's arguments pass here. */
function countNames(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (isJsonArray(value)) {
    for (const item of value) if (typeof item === "object") count += countNames(item);
    return count;
  }
  const names = Object.keys(value);
  for (const name of names) {
    const field = value[name];
    if (typeof field === "object") count += countNames(field);
  }
  return count + names.length;
}

/** Counts an integer's digits; those of a fraction do not matter, and three of an exponent are as good as sixteen. */
function digitsAfter(digits: number, c: number): number {
  if (c >= 48 && c <= 57) return digits + 1;
  if (c === 43 || c === 45) return digits;
  if (c === 46) return -1e9;
  return digits !== 0 && (c === 69 || c === 101) ? LONG_DIGITS - 3 : 0;
}

/** Index of the closing quote of the string that begins at `start`; the text's end where there is none. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 92) i++;
    else if (c === 34) return i;
  }
  return text.length;
}
