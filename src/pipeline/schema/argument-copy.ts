import { isJsonArray, type JsonObject, type JsonValue, MAX_JSON_DEPTH, pointerSteps } from "../../core/json.ts";

/** Most JSON values in the arguments of a call. */
const MAX_ARGUMENT_VALUES = 20_000;

/** Thrown for arguments with more values or levels than are looked at. Never leaves this folder. */
export class ArgumentsTooLarge extends Error {}

type Container = Record<string | number, JsonValue>;

/**
 * A copy of a call's arguments, or of another JSON value that is no `bigint` itself, for the validator, which knows
 * numbers but no `bigint`: a number stands where a `bigint` was, and the `bigint` beside it. Objects have no prototype,
 * so a name such as `__proto__` is like any other.
 */
export class ArgumentCopy<R extends JsonValue = JsonValue> {
  readonly root: R;
  readonly #exact = new Map<object, Map<string, bigint>>();
  #values = 0;
  #nulls = 0;

  /** @throws ArgumentsTooLarge. */
  constructor(args: R) {
    this.root = this.#copy(args, 1) as R;
  }

  /** How many JSON values it holds. */
  get size(): number {
    return this.#values;
  }

  /** Whether a `null` is or was in it. */
  get holdsNull(): boolean {
    return this.#nulls > 0;
  }

  /** The value in a container of the copy, with all its digits. */
  exact(container: object | undefined, key: string | number, value: JsonValue): JsonValue {
    if (this.#exact.size === 0 || container === undefined) return value;
    return this.#exact.get(container)?.get(String(key)) ?? value;
  }

  /** A value of the copy with all its digits at every depth. */
  exactDeep(value: JsonValue): JsonValue {
    if (this.#exact.size === 0 || typeof value !== "object" || value === null) return value;
    const restore = (key: string | number, item: JsonValue) => this.exactDeep(this.exact(value, key, item));
    if (isJsonArray(value)) return value.map((item, i) => restore(i, item));
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, restore(key, item)]));
  }

  /** Puts a copy of the value into an object of the copy. */
  set(object: JsonObject, key: string, value: JsonValue): void {
    const container: Container = object;
    container[key] = this.#member(object, key, value, 1);
  }

  /**
   * Takes out each `null` at these places, where it is the value of a name: many clients send one for a parameter they
   * do not set. Tells whether there was any.
   */
  dropNulls(pointers: Iterable<string>): boolean {
    let dropped = false;
    for (const pointer of pointers) {
      const place = this.#place(pointer);
      if (place === undefined || Array.isArray(place.container) || place.container[place.key] !== null) continue;
      delete place.container[place.key];
      dropped = true;
    }
    return dropped;
  }

  /** The copy with every `bigint` back in its place. To be used no more after it. */
  finish(): R {
    for (const [container, digits] of this.#exact) {
      for (const [key, value] of digits) (container as Container)[key] = value;
    }
    return this.root;
  }

  #place(pointer: string): { readonly container: Container; readonly key: string } | undefined {
    const steps = pointerSteps(pointer);
    const key = steps.pop();
    let container: JsonValue | undefined = this.root;
    for (const step of steps) {
      if (typeof container !== "object" || container === null) return undefined;
      container = (container as Container)[step];
    }
    if (typeof container !== "object" || container === null || key === undefined) return undefined;
    return { container: container as Container, key };
  }

  #copy(value: JsonValue, depth: number): JsonValue {
    if (++this.#values > MAX_ARGUMENT_VALUES) throw new ArgumentsTooLarge(`more than ${MAX_ARGUMENT_VALUES} values`);
    if (value === null) this.#nulls++;
    if (typeof value !== "object" || value === null) return value;
    if (depth > MAX_JSON_DEPTH) throw new ArgumentsTooLarge(`nested deeper than ${MAX_JSON_DEPTH} levels`);
    if (isJsonArray(value)) {
      const list: JsonValue[] = [];
      for (const [i, item] of value.entries()) list.push(this.#member(list, i, item, depth + 1));
      return list;
    }
    const object = Object.create(null) as Container;
    for (const [key, item] of Object.entries(value)) object[key] = this.#member(object, key, item, depth + 1);
    return object;
  }

  /** What stands for the value in a container of the copy. */
  #member(container: object, key: string | number, value: JsonValue, depth: number): JsonValue {
    if (typeof value !== "bigint") return this.#copy(value, depth);
    const digits = this.#exact.get(container);
    if (digits === undefined) this.#exact.set(container, new Map([[String(key), value]]));
    else digits.set(String(key), value);
    return Number(value);
  }
}
