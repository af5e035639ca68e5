import { type JsonObject, type JsonValue, jsonPointer } from "../../core/json.ts";
import type { Dialect } from "./dialect.ts";
import type { LinearPattern } from "./linear-pattern.ts";
import type { WorkMeter } from "./work-meter.ts";

/** One thing that does not fit. */
export interface SchemaError {
  readonly keyword: string;
  /** JSON pointer of the value; for a name, of its object. */
  readonly instancePath: string;
  /** What the keyword has to say, by keyword. */
  readonly params: Readonly<Record<string, string | number>>;
  /** The keyword's value. */
  readonly schema: JsonValue;
  /** The schema it stands in; absent for the schema `false`. */
  readonly parentSchema: JsonObject | undefined;
  /** The value, or the name, with all its digits. */
  readonly data: JsonValue;
  /** Why each alternative does not fit, where the keyword has some; why the name does not. */
  readonly parts: readonly (readonly SchemaError[])[];
}

/** Where the digits of integers beyond 2^53 are found while a check runs. */
export interface ExactValues {
  /** The value in a container, with all its digits. */
  exact(container: object | undefined, key: string | number, value: JsonValue): JsonValue;
  /** The value with all its digits at every depth. */
  exactDeep(value: JsonValue): JsonValue;
}

/** A value and the way to it. */
export interface Place {
  readonly value: JsonValue;
  readonly parent: Place | undefined;
  readonly key: string | number;
  /** Whether the value is the name of a property of the parent's value. */
  readonly isName?: boolean;
}

/** One check of one value, with all below it. */
export interface Run {
  readonly values: ExactValues;
  readonly meter: WorkMeter;
  readonly errors: SchemaError[];
  /** How many schemas are being held, one inside the other. */
  depth: number;
}

/** What of a value has been looked at by the schemas held against it so far: `unevaluated…` is for the rest. */
export class Seen {
  readonly #names = new Set<string>();
  readonly #indexes = new Set<number>();
  #allNames = false;
  #allIndexes = false;

  name(name: string): void {
    this.#names.add(name);
  }

  index(index: number): void {
    this.#indexes.add(index);
  }

  allNames(): void {
    this.#allNames = true;
  }

  allIndexes(): void {
    this.#allIndexes = true;
  }

  hasName(name: string): boolean {
    return this.#allNames || this.#names.has(name);
  }

  hasIndex(index: number): boolean {
    return this.#allIndexes || this.#indexes.has(index);
  }

  /** Adds what another has. */
  add(other: Seen): void {
    for (const name of other.#names) this.#names.add(name);
    for (const index of other.#indexes) this.#indexes.add(index);
    this.#allNames ||= other.#allNames;
    this.#allIndexes ||= other.#allIndexes;
  }
}

/** A schema that values are held against. */
export interface SchemaPart {
  /**
   * Whether the value fits; what does not is added to the errors of the run. What was looked at is added to `seen`.
   *
   * @throws WorkLimitReached, ArgumentsTooLarge.
   */
  fits(place: Place, run: Run, seen: Seen | undefined): boolean;
}

/** Holds a value against one keyword and adds what does not fit to the run's errors. */
export type Check = (place: Place, run: Run, seen: Seen | undefined) => void;

/** A keyword in its schema. */
export interface Keyword {
  /** What stands behind it. */
  readonly value: JsonValue;
  /** The schema it stands in. */
  readonly schema: JsonObject;
  readonly dialect: Dialect;
  readonly patterns: ReadonlyMap<string, LinearPattern>;
  /** A schema made ready. */
  part(schema: JsonValue): SchemaPart;
  /** The schema a reference leads to. */
  target(reference: string): SchemaPart;
  /** Adds an error of this keyword. */
  fail(place: Place, run: Run, params?: SchemaError["params"], parts?: SchemaError["parts"]): void;
}

/** Prepares the check of a keyword; `undefined` where it has nothing to say in this schema or dialect. */
export type MakeCheck = (keyword: Keyword) => Check | undefined;

/** The value of a name or index of a value. */
export function child(parent: Place, key: string | number, value: JsonValue): Place {
  return { value, parent, key };
}

/** JSON pointer of a place. */
export function pointerOf(place: Place): string {
  const steps: (string | number)[] = [];
  for (let at = place; at.parent !== undefined; at = at.parent) if (at.isName !== true) steps.push(at.key);
  return jsonPointer(steps.toReversed());
}

/** A text; empty where it is something else. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

const NO_ERRORS: readonly SchemaError[] = [];

/** Holds a value against a schema that need not fit. Gives the errors; where there are none, `seen` has what was looked at. */
export function attempt(part: SchemaPart, place: Place, run: Run, seen: Seen | undefined): readonly SchemaError[] {
  const before = run.errors.length;
  const own = seen === undefined ? undefined : new Seen();
  if (!part.fits(place, run, own)) return run.errors.splice(before);
  if (own !== undefined) seen?.add(own);
  return NO_ERRORS;
}

/** The place's value with all its digits. */
export function exactValue({ value, parent, key, isName }: Place, { values }: Run): JsonValue {
  if (isName === true) return value;
  const container = parent?.value;
  return typeof container === "object" && container !== null ? values.exact(container, key, value) : value;
}
