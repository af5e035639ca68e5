import { isJsonArray, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { ValueRefused } from "../shared/text-template.ts";

/** Most bytes of a request's path and query together: what Node's own server takes; many take half. */
export const MAX_TARGET_BYTES = 16 * 1024;

/** Most bytes of one header's value. */
export const MAX_HEADER_BYTES = 16 * 1024;

/**
 * Refuses arguments that would make a URL or header longer than anybody takes.
 *
 * @param length of the text in bytes, or less where it is not made yet.
 * @param place where it stands, such as "the URL".
 * @throws ValueRefused for the longest of the arguments `names`.
 */
export function checkLength(
  { length, limit, place }: { readonly length: number; readonly limit: number; readonly place: string },
  names: Iterable<string>,
  args: JsonObject,
): void {
  if (length <= limit) return;
  const [first = "", ...others] = names;
  const lengthOf = (name: string): number => textLength(ownValue(args, name));
  const longest = others.reduce((known, name) => (lengthOf(name) > lengthOf(known) ? name : known), first);
  throw new ValueRefused(longest, `is too long: ${place} takes at most ${limit} bytes, encoded`);
}

/** How long the arguments are at least where they stand as text. */
export function lengthOfAll(names: Iterable<string>, args: JsonObject): number {
  let sum = 0;
  for (const name of names) sum += textLength(ownValue(args, name));
  return sum;
}

function textLength(value: JsonValue | undefined): number {
  if (typeof value === "string") return value.length;
  return isJsonArray(value) ? value.reduce<number>((sum, item) => sum + textLength(item) + 1, 0) : 0;
}
