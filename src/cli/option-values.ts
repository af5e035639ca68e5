import { InvalidArgumentError } from "commander";
import { parseDuration } from "../core/durations.ts";

/** All values of an option that is repeated. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/**
 * The key of a call. An empty one, such as a variable that is not set, would be none, and the call could count twice.
 *
 * @throws InvalidArgumentError.
 */
export function requestKey(text: string): string {
  if (/^[\x21-\x7e]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError("It takes 1 to 64 visible ASCII characters, such as a UUID.");
}

/** A number from 0. @throws InvalidArgumentError. */
export function wholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Write a whole number.");
}

/** Whose a key is. @throws InvalidArgumentError. */
export function keyName(text: string): string {
  if (/^[A-Za-z0-9_.@-]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError("Write 1 to 64 letters, digits, _, ., @ or -.");
}

/** A duration in which days count too, in milliseconds. @throws InvalidArgumentError. */
export function days(text: string): number {
  const found = /^(\d{1,5})d$/.exec(text)?.[1];
  return found === undefined || Number(found) === 0 ? duration(text) : Number(found) * 86_400_000;
}

/** A number of lines. @throws InvalidArgumentError. */
export function many(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Write a whole number from 1 to 999999.");
}

/** A duration in milliseconds. @throws InvalidArgumentError. */
export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms === 0)
    throw new InvalidArgumentError("Write a duration above zero with its unit, such as 10s, 500ms or 1m30s.");
  return ms;
}
