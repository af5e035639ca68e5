/** JSON as this client reads it: integers beyond 2^53 are `bigint`, so that 64-bit ids keep their digits. */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** What can stand as arguments. `undefined` members are left out, as JSON.stringify does. */
export type JsonInput =
  | null
  | undefined
  | boolean
  | number
  | bigint
  | string
  | readonly JsonInput[]
  | { readonly [key: string]: JsonInput };

/** The part of the JSON object that keeps digits; older browsers lack it. Source: https://github.com/tc39/proposal-json-parse-with-source. */
interface ExactJson {
  rawJSON?(text: string): unknown;
}

/**
 * Parses JSON text without rounding integers, where the platform tells a number's text (Node 22, browsers since 2025);
 * elsewhere such integers are rounded as JSON.parse does.
 *
 * @throws SyntaxError for malformed text.
 */
export function parseExact(text: string): JsonValue {
  // The reviver is ten times slower, so it runs only where an integer beyond 2^53 may stand.
  return (/\d{16}/.test(text) ? JSON.parse(text, exactInteger) : JSON.parse(text)) as JsonValue;
}

/**
 * Writes JSON text; a `bigint` appears as a plain number.
 *
 * @throws TypeError for a `bigint` where the platform lacks JSON.rawJSON, and for what JSON cannot hold.
 */
export function stringifyExact(value: JsonInput): string {
  return JSON.stringify(value ?? null, (_key, member: unknown) =>
    typeof member === "bigint" ? digits(member) : member,
  );
}

function digits(value: bigint): unknown {
  const exact = JSON as ExactJson;
  if (exact.rawJSON === undefined) throw new TypeError("this platform cannot write a bigint as JSON; pass JSON text");
  return exact.rawJSON(value.toString());
}

function exactInteger(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined || Number.isSafeInteger(value)) return value;
  return /^-?\d+$/.test(source) ? BigInt(source) : value;
}
