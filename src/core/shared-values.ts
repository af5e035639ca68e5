import { isJsonArray, type JsonValue } from "./json.ts";

/**
 * Freezes a JSON value with all it holds, and gives it back. A frozen value is one that several owners may share, and
 * the mark of it.
 */
export function freezeJson<T extends JsonValue>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of isJsonArray(value) ? value : Object.values<JsonValue>(value)) freezeJson(member);
  return value;
}

/**
 * What was worked out of frozen values, kept for as long as these are: thousands of declarations have parts in common,
 * and what follows from a part is the same for all of them. Of other values nothing is kept.
 */
export class SharedResults<R> {
  readonly #known = new WeakMap<object, R>();
  readonly #freeze: (result: R) => void;

  /** @param freeze freezes what of a result is JSON, so that what follows from that can be kept as well. */
  constructor(freeze: (result: R) => void = () => undefined) {
    this.#freeze = freeze;
  }

  /** The result for a value. `isKept` false: it holds for this once, and is worked out again the next time. */
  of(value: object, work: () => R, isKept: (result: R) => boolean = () => true): R {
    if (!Object.isFrozen(value)) return work();
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    const made = work();
    if (!isKept(made)) return made;
    this.#freeze(made);
    this.#known.set(value, made);
    return made;
  }
}
