import { isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson, stringifyJson } from "../core/json.ts";
import type { StoredRegistration } from "../core/store.ts";

/** Version of the form below; another one is not guessed at. */
const FORM = 1;

/** A registration as text of a file. */
export function encodeRegistration(registration: StoredRegistration): string {
  const { leaseExpireTimeMs = null, ...rest } = registration;
  return `${stringifyJson({ form: FORM, ...rest, leaseExpireTimeMs }, 2)}\n`;
}

/** Reads what {@link encodeRegistration} wrote. @throws SyntaxError that says what is wrong, for anything else. */
export function decodeRegistration(text: string): StoredRegistration {
  const value = parseJson(text);
  if (!isJsonObject(value)) throw new SyntaxError("is no JSON object");
  if (ownValue(value, "form") !== FORM) throw new SyntaxError(`has another form than ${FORM}`);
  const format = textOf(value, "format");
  if (format !== "yaml" && format !== "json") throw new SyntaxError("`format` is neither yaml nor json");
  const lease = ownValue(value, "leaseExpireTimeMs");
  return {
    name: textOf(value, "name"),
    text: textOf(value, "text"),
    format,
    principal: textOf(value, "principal"),
    createTimeMs: timeOf(value, "createTimeMs"),
    updateTimeMs: timeOf(value, "updateTimeMs"),
    leaseExpireTimeMs: lease === null ? undefined : timeOf(value, "leaseExpireTimeMs"),
  };
}

function textOf(object: JsonObject, key: string): string {
  const value: JsonValue | undefined = ownValue(object, key);
  if (typeof value !== "string") throw new SyntaxError(`\`${key}\` is no text`);
  return value;
}

function timeOf(object: JsonObject, key: string): number {
  const value: JsonValue | undefined = ownValue(object, key);
  if (typeof value !== "number") throw new SyntaxError(`\`${key}\` is no number`);
  return value;
}
