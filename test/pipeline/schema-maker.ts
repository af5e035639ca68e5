import type { ValidateFunction } from "ajv";
import type { JsonObject, JsonValue } from "../../src/core/json.ts";
import { createRandom } from "../core/random.ts";

/** For ajv as the judge. */
export const JUDGE_OPTIONS = { strict: false, validateFormats: false, logger: false, addUsedSchema: false } as const;

const NAMES = ["a", "b", "c", "dg"] as const;
const VALUES: readonly JsonValue[] = [
  0,
  1,
  2,
  1.5,
  -1,
  "",
  "a",
  "bb",
  "ccc",
  true,
  false,
  [],
  {},
  [1],
  [1, 1],
  { a: 1 },
];

/** Makes schemas and values that have something to do with each other. */
export class SchemaMaker {
  readonly #random: (below: number) => number;
  readonly #modern: boolean;

  constructor(seed: number, modern: boolean) {
    const random = createRandom(seed);
    this.#random = (below) => Math.floor(random() * below);
    this.#modern = modern;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random(list.length)] as T;
  }

  #some<T>(make: () => T): T[] {
    return Array.from({ length: 1 + this.#random(3) }, make);
  }

  #named(make: () => JsonValue): JsonObject {
    return Object.fromEntries(this.#some(() => [this.#pick(NAMES), make()]));
  }

  root(): JsonObject {
    const defs = { x: this.schema(2), y: this.schema(2) };
    return { ...this.#object(4), $defs: defs };
  }

  schema(depth: number): JsonValue {
    const kind = this.#random(12);
    return kind === 0 ? true : kind === 1 ? false : this.#object(depth);
  }

  #object(depth: number): JsonObject {
    const makers = [...this.#simple(), ...(depth > 0 ? this.#compound(depth - 1) : [])];
    return Object.assign({}, ...this.#some(() => this.#pick(makers)()));
  }

  #simple(): (() => JsonObject)[] {
    const types = ["string", "number", "integer", "boolean", "array", "object", "null"];
    return [
      () => ({ type: this.#pick(types) }),
      () => ({ type: [...new Set(this.#some(() => this.#pick(types)))] }),
      () => ({ enum: this.#some(() => this.#pick(VALUES)) }),
      () => ({ const: this.#pick(VALUES) }),
      () => ({ minimum: this.#random(3), exclusiveMaximum: 2 }),
      () => ({ maximum: this.#random(3), exclusiveMinimum: 0 }),
      () => ({ multipleOf: this.#pick([1, 2, 0.5]) }),
      () => ({ minLength: this.#random(3), maxLength: 2 }),
      () => ({ pattern: this.#pick(["^a", "b+$", "^.{2}$"]) }),
      () => ({ minItems: this.#random(3), maxItems: 3 }),
      () => ({ uniqueItems: true }),
      () => ({ required: [...new Set(this.#some(() => this.#pick(NAMES)))] }),
      () => ({ minProperties: this.#random(3), maxProperties: 2 }),
      () => ({ dependentRequired: this.#named(() => [this.#pick(NAMES)]) }),
    ];
  }

  #compound(depth: number): (() => JsonObject)[] {
    const one = (): JsonValue => this.schema(depth);
    const rest = (): JsonObject =>
      this.#modern
        ? { prefixItems: this.#some(one), items: one() }
        : { items: this.#some(one), additionalItems: one() };
    const common = [
      () => ({ properties: this.#named(one) }),
      () => ({ properties: this.#named(one), additionalProperties: one() }),
      () => ({ patternProperties: { "^a": one(), g$: one() }, additionalProperties: one() }),
      () => ({ propertyNames: { pattern: "^[ab]" } }),
      () => ({ items: one() }),
      rest,
      () => ({ contains: one(), minContains: this.#random(3), maxContains: 2 + this.#random(2) }),
      () => ({ not: one() }),
      () => ({ anyOf: this.#some(one) }),
      () => ({ oneOf: this.#some(one) }),
      () => ({ allOf: this.#some(one) }),
      () => Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, one()])),
      () => ({ dependencies: this.#named(() => (this.#random(2) === 0 ? [this.#pick(NAMES)] : one())) }),
      () => ({ dependentSchemas: this.#named(one) }),
      () => ({ $ref: this.#pick(["#/$defs/x", "#/$defs/y"]) }),
    ];
    return this.#modern
      ? [
          ...common,
          () => ({ unevaluatedProperties: one(), ...this.#object(depth) }),
          () => ({ unevaluatedItems: one(), ...this.#object(depth) }),
        ]
      : common;
  }

  value(depth: number): JsonValue {
    const kind = this.#random(depth > 0 ? 4 : 2);
    if (kind < 2) return this.#pick(VALUES);
    return kind === 2 ? this.#some(() => this.value(depth - 1)) : this.#named(() => this.value(depth - 1));
  }

  args(): JsonObject {
    return this.#named(() => this.value(3));
  }
}

/**
 * ajv takes every item for looked at where there is `contains`, and where an alternative that does not fit has
 * `unevaluatedItems`; the specification says those that `contains` finds, and what alternatives that fit look at.
 */
export function hasDisputed(schema: JsonObject): boolean {
  const uses = JSON.stringify(schema).split('"unevaluatedItems"').length - 1;
  return uses > 1 || (uses === 1 && JSON.stringify(schema).includes('"contains"'));
}

/** What ajv says; `undefined`: for a few schemas with `unevaluated…` it makes code that cannot run. */
export function verdict(judge: ValidateFunction, args: JsonObject): boolean | undefined {
  try {
    return judge(args);
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}
