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

/**
 * One check of one value, with all below it. It pauses where its slice of time is spent: whoever finds `paused` set when
 * a schema comes back has it go on `later` with what is left to do, and returns. So the innermost goes on first, and all
 * comes in the order in which it would have come without a pause.
 */
export interface Run {
  readonly values: ExactValues;
  readonly meter: WorkMeter;
  readonly errors: SchemaError[];
  /** How many schemas are being held, one inside the other. */
  depth: number;
  /** Whether it is to go on later. */
  readonly paused: boolean;
  /** Pauses it. */
  later(rest: () => void): void;
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
   * Adds what does not fit to the errors of the run, and what was looked at to `seen`. May pause the run.
   *
   * @throws WorkLimitReached, ArgumentsTooLarge.
   */
  hold(place: Place, run: Run, seen: Seen | undefined): void;
}

/** Holds a value against one keyword and adds what does not fit to the run's errors. May pause the run. */
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

/** A value that need not fit what it is held against. */
export interface Trial {
  readonly place: Place;
  /** Has what was looked at, once the value fits. */
  readonly seen: Seen | undefined;
  /** Is told what does not fit; empty: all fits. */
  judge(errors: readonly SchemaError[]): void;
}

/** Holds a value against a schema that it need not fit. May pause the run. */
export function attempt(part: SchemaPart, run: Run, trial: Trial): void {
  const before = run.errors.length;
  const own = trial.seen === undefined ? undefined : new Seen();
  part.hold(trial.place, run, own);
  if (run.paused) run.later(() => settle(before, run, own, trial));
  else settle(before, run, own, trial);
}

function settle(before: number, run: Run, own: Seen | undefined, trial: Trial): void {
  if (run.errors.length > before) return trial.judge(run.errors.splice(before));
  if (own !== undefined) trial.seen?.add(own);
  trial.judge(NO_ERRORS);
}

/** What is done with the items of a list, and after them. */
export interface Turns<T> {
  take(item: T, index: number): void;
  end?(): void;
}

/** Takes the items of a list in turn, from an index on. May pause the run. */
export function inTurn<T>(list: readonly T[], run: Run, turns: Turns<T>, from = 0): void {
  for (let i = from; i < list.length; i++) {
    turns.take(list[i] as T, i);
    // Some items take long and are held against nothing.
    if (run.paused || run.meter.isSpent) return run.later(() => inTurn(list, run, turns, i + 1));
  }
  turns.end?.();
}

/** The place's value with all its digits. */
export function exactValue({ value, parent, key, isName }: Place, { values }: Run): JsonValue {
  if (isName === true) return value;
  const container = parent?.value;
  return typeof container === "object" && container !== null ? values.exact(container, key, value) : value;
}
