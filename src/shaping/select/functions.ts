import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from "../../core/json.ts";
import { codePointCount } from "../../core/text.ts";
import { type Budget, SelectFault } from "./budget.ts";
import { isEqual, isNumber, typeOf, walk } from "./values.ts";

/** An argument of a function: a value, or `&expression`. */
export type Argument = JsonValue | Reference;

/** An expression that a function evaluates for items. */
export interface Reference {
  readonly apply: (value: JsonValue) => JsonValue;
}

/** A function of the specification. */
export interface SelectFunction {
  /** Fewest and most arguments. */
  readonly least: number;
  readonly most: number;
  /** @throws SelectFault where an argument is of a type it does not take. */
  readonly call: (args: Arguments, budget: Budget) => JsonValue;
}

/** Arguments with their types checked as they are taken. */
export class Arguments {
  readonly #name: string;
  readonly #values: readonly Argument[];

  constructor(name: string, values: readonly Argument[]) {
    this.#name = name;
    this.#values = values;
  }

  /** How many there are. */
  get count(): number {
    return this.#values.length;
  }

  /** Takes the steps of looking at all of an argument. @throws SelectFault */
  pay(index: number, budget: Budget): void {
    const value = this.#values[index] ?? null;
    if (!isReference(value)) walk(value, budget);
  }

  /** Any value. */
  any(index: number): JsonValue {
    const value = this.#values[index] ?? null;
    return isReference(value) ? this.#refuse(index, "a value", "an expression") : value;
  }

  /** A list. */
  list(index: number): readonly JsonValue[] {
    const value = this.any(index);
    return isJsonArray(value) ? value : this.#refuse(index, "a list", typeOf(value));
  }

  /** An object. */
  object(index: number): JsonObject {
    const value = this.any(index);
    return isJsonObject(value) ? value : this.#refuse(index, "an object", typeOf(value));
  }

  /** A text. */
  text(index: number): string {
    const value = this.any(index);
    return typeof value === "string" ? value : this.#refuse(index, "a text", typeOf(value));
  }

  /** A number. */
  number(index: number): number | bigint {
    const value = this.any(index);
    return isNumber(value) ? value : this.#refuse(index, "a number", typeOf(value));
  }

  /** A list of numbers. */
  numbers(index: number): readonly (number | bigint)[] {
    const list = this.list(index);
    return list.every(isNumber) ? list : this.#refuse(index, "a list of numbers", "other items");
  }

  /** A list of texts. */
  texts(index: number): readonly string[] {
    const list = this.list(index);
    return list.every((item) => typeof item === "string")
      ? list
      : this.#refuse(index, "a list of texts", "other items");
  }

  /** An expression, written `&expression`. */
  reference(index: number): Reference {
    const value = this.#values[index] ?? null;
    return isReference(value) ? value : this.#refuse(index, "an expression, such as `&name`", typeOf(value));
  }

  /** Numbers alone, or texts alone. */
  comparable(items: readonly JsonValue[]): readonly (number | bigint | string)[] {
    if (items.every(isNumber) || items.every((item) => typeof item === "string")) return items;
    return this.#refuse(0, "numbers alone or texts alone", "both, or others");
  }

  #refuse(index: number, takes: string, got: string): never {
    throw new SelectFault("mismatch", `\`${this.#name}\` takes ${takes} as its argument ${index + 1}, got ${got}`);
  }
}

function isReference(value: Argument): value is Reference {
  return typeof value === "object" && value !== null && "apply" in value && typeof value.apply === "function";
}

type Call = SelectFunction["call"];

/** Longest text that may be a number. */
const MAX_DIGITS = 100;

const length: Call = (args) => {
  const value = args.any(0);
  if (typeof value === "string") return codePointCount(value);
  return isJsonObject(value) ? Object.keys(value).length : args.list(0).length;
};

const contains: Call = (args, budget) => {
  const [whole, part] = [args.any(0), args.any(1)];
  if (typeof whole === "string") return typeof part === "string" && whole.includes(part);
  return args.list(0).some((item) => isEqual(item, part, budget));
};

const sum: Call = (args) => total(args.numbers(0));

function total(numbers: readonly (number | bigint)[]): number | bigint {
  if (!numbers.some((number) => typeof number === "bigint") || !numbers.every(isWhole)) {
    return numbers.reduce<number>((all, number) => all + Number(number), 0);
  }
  const all = numbers.reduce<bigint>((sumOf, number) => sumOf + BigInt(number), 0n);
  return Number.isSafeInteger(Number(all)) ? Number(all) : all;
}

function isWhole(number: number | bigint): boolean {
  return typeof number === "bigint" || Number.isInteger(number);
}

const reverse: Call = (args, budget) => {
  const value = args.any(0);
  if (typeof value !== "string") return args.list(0).toReversed();
  budget.spend(value.length);
  return [...value].toReversed().join("");
};

const merge: Call = (args) =>
  Object.fromEntries(Array.from({ length: args.count }, (_, i) => Object.entries(args.object(i))).flat());

const toNumber: Call = (args) => {
  const value = args.any(0);
  if (isNumber(value)) return value;
  if (typeof value !== "string" || value.length > MAX_DIGITS) return null;
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(value) || !Number.isFinite(Number(value))) return null;
  return parseJson(value);
};

const notNull: Call = (args) => {
  for (let i = 0; i < args.count; i++) {
    const value = args.any(i);
    if (value !== null) return value;
  }
  return null;
};

function compare(a: number | bigint | string, b: number | bigint | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const sort: Call = (args, budget) => {
  const items = args.comparable(args.list(0));
  payForOrder(items.length, budget);
  return items.toSorted(compare);
};

function payForOrder(count: number, budget: Budget): void {
  budget.spend(Math.ceil((count * Math.log2(count + 1)) / 4));
}

const sortBy: Call = (args, budget) => {
  const all = keyed(args);
  payForOrder(all.length, budget);
  return all.toSorted((a, b) => compare(a.key, b.key)).map(({ item }) => item);
};

/** Items with what an expression makes of each. */
function keyed(args: Arguments): readonly { readonly item: JsonValue; readonly key: number | bigint | string }[] {
  const list = args.list(0);
  const { apply } = args.reference(1);
  const keys = args.comparable(list.map(apply));
  return list.map((item, i) => ({ item, key: keys[i] ?? "" }));
}

function extreme(items: readonly (number | bigint | string)[], sign: number): JsonValue {
  return items.length === 0 ? null : items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best));
}

function extremeBy(args: Arguments, sign: number): JsonValue {
  const all = keyed(args);
  const [first] = all;
  return first === undefined
    ? null
    : all.reduce((best, one) => (compare(one.key, best.key) * sign > 0 ? one : best), first).item;
}

/** The functions of the specification. Source: https://jmespath.org/specification.html#built-in-functions. */
export const FUNCTIONS: ReadonlyMap<string, SelectFunction> = new Map(
  Object.entries({
    abs: [1, 1, (args) => (args.number(0) < 0 ? -args.number(0) : args.number(0))],
    avg: [
      1,
      1,
      (args) => (args.numbers(0).length === 0 ? null : Number(total(args.numbers(0))) / args.numbers(0).length),
    ],
    ceil: [1, 1, (args) => rounded(args.number(0), Math.ceil)],
    contains: [2, 2, contains],
    ends_with: [2, 2, (args) => args.text(0).endsWith(args.text(1))],
    floor: [1, 1, (args) => rounded(args.number(0), Math.floor)],
    join: [2, 2, (args) => args.texts(1).join(args.text(0))],
    keys: [1, 1, (args) => Object.keys(args.object(0))],
    length: [1, 1, length],
    map: [2, 2, (args) => args.list(1).map(args.reference(0).apply)],
    max: [1, 1, (args) => extreme(args.comparable(args.list(0)), 1)],
    max_by: [2, 2, (args) => extremeBy(args, 1)],
    merge: [0, 20, merge],
    min: [1, 1, (args) => extreme(args.comparable(args.list(0)), -1)],
    min_by: [2, 2, (args) => extremeBy(args, -1)],
    not_null: [1, 20, notNull],
    reverse: [1, 1, reverse],
    sort: [1, 1, sort],
    sort_by: [2, 2, sortBy],
    starts_with: [2, 2, (args) => args.text(0).startsWith(args.text(1))],
    sum: [1, 1, sum],
    to_array: [1, 1, (args) => (isJsonArray(args.any(0)) ? args.any(0) : [args.any(0)])],
    to_number: [1, 1, toNumber],
    to_string: [1, 1, (args) => (typeof args.any(0) === "string" ? args.any(0) : stringifyJson(args.any(0)))],
    type: [1, 1, (args) => typeOf(args.any(0))],
    values: [1, 1, (args) => Object.values(args.object(0))],
  } satisfies Readonly<Record<string, readonly [number, number, Call]>>).map(([name, [least, most, call]]) => [
    name,
    { least, most, call: paid(call) },
  ]),
);

function rounded(value: number | bigint, round: (value: number) => number): number | bigint {
  return typeof value === "bigint" ? value : round(value);
}

/** A call that pays for all it may look at, and for what it gives. */
function paid(call: Call): Call {
  return (args, budget) => {
    for (let i = 0; i < args.count; i++) args.pay(i, budget);
    const result = call(args, budget);
    walk(result, budget);
    return result;
  };
}
