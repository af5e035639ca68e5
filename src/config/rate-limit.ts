import type { JsonValue } from "../core/json.ts";
import type { RateLimit } from "../core/step.ts";
import { duration, type Setting } from "./setting.ts";

const MAX_CALLS = 1_000_000;
const DAY = 24 * 3_600_000;

/** `requests` of a rate limit. */
export function rateRequests(what: string): Setting {
  return calls(`Most calls of ${what} in the time \`per\`; more are refused.`);
}

/** `per` of a rate limit. */
export const RATE_PER = duration("1s", [1, DAY], "The time in which so many calls may come.");

/** `burst` of a rate limit. */
export function rateBurst(): Setting {
  return calls("Most of the `requests` that may come at once; all of them where it is not set.");
}

/** The rate limit under a key such as `rate_limit`; absent without `requests`. */
export function readRateLimit(values: ReadonlyMap<string, JsonValue>, key: string): RateLimit | undefined {
  const number = (name: string): number | undefined => {
    const value = values.get(`${key}.${name}`);
    return typeof value === "number" ? value : undefined;
  };
  const requests = number("requests");
  if (requests === undefined) return undefined;
  return { requests, perMs: number("per") ?? 1_000, burst: number("burst") ?? requests };
}

/** What is wrong with `per` and `burst` where there is no rate limit. */
export const NO_REQUESTS = "has no effect without `requests` beside it: set that, or leave this out";

function calls(description: string): Setting {
  return { schema: { type: "integer", minimum: 1, maximum: MAX_CALLS, description } };
}
