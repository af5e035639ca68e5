import { isJsonArray, isJsonObject, type JsonValue } from "../../core/json.ts";

const MASK = "***";

/** Headers whose value lets someone in, whoever set it. */
export function isCredentialHeader(name: string): boolean {
  return /^(?:proxy-)?authorization$|^(?:set-)?cookie2?$|api-?key|token|secret|password|signature/i.test(name);
}

/** Names of keys that are secret; `sort_key` and `primary_key` are not. */
const KEY_NAME = /^key$|(?:^|[-_.])(?:access|api|app|auth|client|license|private|secret|subscription)[-_.]?key$/i;

/** Names of tokens that let someone in; `page_token` and `next_token` are not. */
const TOKEN_NAME = /^token$|(?:^|[-_.])(?:access|api|app|auth|bearer|id|refresh|security|session|user)[-_.]?token$/i;

const SECRET_NAME =
  /(?:^|[-_.])(?:secret|(?:api|app|client)secret|password|passwd|pwd|signature|sig|credentials?|authorization)$/i;

/** Whether a parameter or field of this name holds what lets someone in. */
export function isCredentialName(name: string): boolean {
  return KEY_NAME.test(name) || TOKEN_NAME.test(name) || SECRET_NAME.test(name);
}

/** A query or form with the values of credentials masked; `keep` tells values that may be shown. */
export function maskPairs(query: string, keep: (value: string) => boolean = () => false): string {
  const pairs = query.split("&").map((pair) => {
    const at = pair.indexOf("=");
    const shown =
      at === -1 || at === pair.length - 1 || keep(pair.slice(at + 1)) || !isCredentialName(nameOf(pair, at));
    return shown ? pair : `${pair.slice(0, at + 1)}${MASK}`;
  });
  return pairs.join("&");
}

/** A URL with the values of credentials in its query masked. */
export function maskUrl(url: string, keep?: (value: string) => boolean): string {
  const at = url.indexOf("?");
  return at === -1 ? url : url.slice(0, at + 1) + maskPairs(url.slice(at + 1), keep);
}

/** A JSON value with the texts of credentials masked; `keep` tells texts that may be shown. */
export function maskFields(value: JsonValue, keep: (text: string) => boolean): JsonValue {
  if (isJsonArray(value)) return value.map((item) => maskFields(item, keep));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, field]): [string, JsonValue] => {
    const masked = typeof field === "string" && field !== "" && isCredentialName(name) && !keep(field);
    return [name, masked ? MASK : maskFields(field, keep)];
  });
  return Object.fromEntries(entries);
}

function nameOf(pair: string, end: number): string {
  const name = pair.slice(0, end).replaceAll("+", " ");
  try {
    return decodeURIComponent(name);
  } catch (error) {
    if (error instanceof URIError) return name;
    throw error;
  }
}
