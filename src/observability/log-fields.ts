import { GatewayError } from "../core/errors.ts";
import type { LogFields } from "../core/logger.ts";
import type { Redactor } from "../core/secrets.ts";
import { wellFormed } from "../core/text.ts";

/** Longest text of a field, in characters: a longer one is cut. */
const MAX_TEXT = 8_192;

/** Longest text that is looked at, since masking takes time: of a longer one only its length is told. */
const MAX_MASKED = 1_000_000;

/** Longest stack trace, in characters. */
const MAX_STACK = 4_096;

/** Most entries of a list or an object. */
const MAX_ENTRIES = 100;

/** Deepest nesting of a field. */
const MAX_DEPTH = 6;

/** Most errors in a chain of causes. */
const MAX_CAUSES = 5;

/** Makes fields fit for a line of JSON: plain data, bounded, every text masked. */
export function cleanFields(fields: LogFields, redactor: Redactor): Record<string, unknown> {
  return cleanObject(fields, redactor, 0);
}

function cleanObject(object: object, redactor: Redactor, depth: number): Record<string, unknown> {
  const clean = Object.create(null) as Record<string, unknown>;
  for (const [key, value] of Object.entries(object).slice(0, MAX_ENTRIES)) {
    if (value !== undefined) clean[cleanText(key, redactor, 200)] = cleanValue(value, redactor, depth + 1);
  }
  return clean;
}

function cleanValue(value: unknown, redactor: Redactor, depth: number): unknown {
  if (typeof value === "string") return cleanText(value, redactor, MAX_TEXT);
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "boolean" || value === null) return value;
  if (typeof value === "object") return cleanContainer(value, redactor, depth);
  return typeof value === "bigint" ? String(value) : `a ${typeof value}`;
}

function cleanContainer(value: object, redactor: Redactor, depth: number): unknown {
  if (value instanceof Error) return cleanError(value, redactor, 1);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (depth >= MAX_DEPTH) return "…";
  if (!Array.isArray(value)) return cleanObject(value, redactor, depth);
  return value.slice(0, MAX_ENTRIES).map((item) => cleanValue(item, redactor, depth + 1));
}

function cleanError(error: Error, redactor: Redactor, link: number): Record<string, unknown> {
  const code: unknown = "code" in error ? error.code : undefined;
  const clean: Record<string, unknown> = {
    type: cleanText(error.name, redactor, 200),
    message: cleanText(error.message, redactor, MAX_TEXT),
  };
  if (typeof code === "string" || typeof code === "number") clean["code"] = cleanValue(code, redactor, MAX_DEPTH);
  if (error instanceof GatewayError) {
    clean["reason"] = error.reason;
    clean["effect"] = error.effect;
    clean["metadata"] = cleanObject(error.metadata, redactor, 1);
  }
  if (error.stack !== undefined) clean["stack"] = cleanText(error.stack, redactor, MAX_STACK);
  if (error.cause !== undefined) clean["cause"] = cleanCause(error.cause, redactor, link);
  return clean;
}

function cleanCause(cause: unknown, redactor: Redactor, link: number): unknown {
  if (link >= MAX_CAUSES) return "…";
  return cause instanceof Error ? cleanError(cause, redactor, link + 1) : cleanValue(cause, redactor, MAX_DEPTH - 1);
}

/** Masks before it cuts, so that no half of a secret stays. */
function cleanText(text: string, redactor: Redactor, max: number): string {
  if (text.length > MAX_MASKED) return `${text.length} characters`;
  const masked = redactor.text(text);
  return wellFormed(masked.length <= max ? masked : `${masked.slice(0, max - 1)}…`);
}
