import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { type FieldViolation, GatewayError } from "../core/errors.ts";
import { type JsonObject, type JsonValue, stringifyJson } from "../core/json.ts";
import { ArgumentCopy, ArgumentsTooLarge } from "./schema/argument-copy.ts";
import type { SchemaError } from "./schema/check.ts";
import { compileSchema, type Validator } from "./schema/compile-schema.ts";
import { createDefaults, type Defaults } from "./schema/defaults.ts";
import { violation } from "./schema/describe-error.ts";
import { createMetaChecker } from "./schema/dialect.ts";
import { rememberPatterns } from "./schema/linear-pattern.ts";
import { type ReadTools, readSchema, schemaProblem } from "./schema/read-schema.ts";
import type { SlicedRun } from "./schema/sliced-run.ts";
import { violationsOf } from "./schema/violations.ts";
import { SLICE, type Slice, WorkLimitReached } from "./schema/work-meter.ts";

/** Patterns that are remembered between schemas. One takes about 20 KiB, a large one 200. */
const MAX_PATTERNS = 200;

/** Outcome of holding arguments against a schema. */
export type ArgumentsOutcome =
  | {
      readonly ok: true;
      /** The arguments with declared defaults filled in. Its objects have no prototype. */
      readonly value: JsonObject;
    }
  | { readonly ok: false; readonly violations: readonly FieldViolation[] };

/** Arguments of which a part has been held against the schema. */
export interface UnfinishedCheck {
  /**
   * Does the rest in slices, between which others have their turn. Rejects with the signal's reason, between two of
   * them.
   */
  finish(signal: AbortSignal): Promise<ArgumentsOutcome>;
}

/** Checks schemas when tools are loaded, and arguments when they are called. */
export interface SchemaChecker {
  /**
   * What is wrong with a schema, in one line; `undefined` where it can be used. Understands draft-04, draft-06, draft-07, 2019-09
   * and 2020-12, by `$schema` (default 2020-12); unknown keywords and formats mean nothing. Refuses other dialects, references out of
   * the document, patterns that need backtracking, and what would take long to read or to run: over 256 KiB, 2,000
   * properties, 64 levels, or alternatives that multiply.
   */
  problem(schema: JsonObject): string | undefined;
  /**
   * Compiles a pattern of a schema to come, which is remembered for a while. Returns about how many microseconds that
   * takes; 0 for one that is refused.
   */
  compilePattern(source: string): number;
  /**
   * Holds arguments against a schema, without conversion of types and without touching the caller's object. Integers
   * beyond 2^53 keep and are compared by all their digits. A `null` the schema refuses counts as absent. Arguments of
   * over 20,000 values or 128 levels are refused as TOO_LARGE, and so are those that take too much work: 15 ms where it
   * multiplies, 15 ms and 2 µs for each value where it does not.
   *
   * @throws GatewayError INTERNAL for a schema that `problem` refuses.
   */
  check(schema: JsonObject, args: JsonObject): ArgumentsOutcome;
  /** The same for a slice of 5 ms, which is enough for nearly all. */
  beginCheck(schema: JsonObject, args: JsonObject): ArgumentsOutcome | UnfinishedCheck;
  /**
   * Where a result does not fit a schema, as it stands: nothing is filled in and no `null` left out. `undefined`: not
   * to be told, since the schema cannot be used or the result has too much in it, by the limits of `check`. Works in
   * slices, and rejects with the signal's reason between two of them.
   */
  mismatches(schema: JsonObject, value: JsonValue, signal: AbortSignal): Promise<Mismatches>;
}

/** Where a result does not fit; `undefined`: not to be told. */
export type Mismatches = readonly FieldViolation[] | undefined;

/** A schema ready to be used. */
interface Compiled {
  readonly validator: Validator;
  readonly defaults: Defaults;
}

/** What a checker is made with. */
export interface SchemaCheckerOptions {
  /** Compiled schemas that are kept, those used last; equal schemas share one. */
  readonly maxCompiled: number;
  /** How long it works at a stretch. */
  readonly slice?: Slice;
}

/** Makes a checker. Takes about 100 ms, for the meta-schemas. */
export function createSchemaChecker({ maxCompiled, slice = SLICE }: SchemaCheckerOptions): SchemaChecker {
  const tools: ReadTools = { meta: createMetaChecker(), compilePattern: rememberPatterns(MAX_PATTERNS) };
  const compiledOf = rememberCompiled(maxCompiled, (schema) => compile(schema, tools, slice));
  return {
    problem: (schema) => schemaProblem(schema, tools),
    compilePattern(source) {
      const outcome = tools.compilePattern(source);
      return outcome.ok ? outcome.work : 0;
    },
    check(schema, args) {
      const checking = new ArgumentCheck(compiledOf(schema), args);
      let outcome: ArgumentsOutcome | undefined;
      while (outcome === undefined) outcome = checking.go();
      return outcome;
    },
    beginCheck(schema, args) {
      const checking = new ArgumentCheck(compiledOf(schema), args);
      return checking.go() ?? { finish: (signal) => inSlices(() => checking.go(), signal) };
    },
    async mismatches(schema, value, signal) {
      try {
        const copy = new ArgumentCopy(typeof value === "bigint" ? Number(value) : value);
        const run = compiledOf(schema).validator.hold(copy);
        return violationsOf(run.go() ?? (await inSlices(() => run.go(), signal)));
      } catch (error) {
        if (error instanceof ArgumentsTooLarge || error instanceof WorkLimitReached) return undefined;
        if (error instanceof GatewayError && error.reason === "INTERNAL") return undefined;
        throw error;
      }
    },
  };
}

function compile(schema: JsonObject, tools: ReadTools, slice: Slice): Compiled {
  const outcome = readSchema(schema, tools);
  if (!outcome.ok) throw new GatewayError("INTERNAL", `input schema cannot be used: ${outcome.problem}`);
  try {
    return { validator: compileSchema(outcome.ready, slice), defaults: createDefaults(outcome.ready.schema) };
  } catch (cause) {
    throw new GatewayError("INTERNAL", "input schema cannot be compiled", { cause });
  }
}

/** Keeps what was made of the schemas that were used last, by what they say. */
function rememberCompiled(limit: number, make: (schema: JsonObject) => Compiled): (schema: JsonObject) => Compiled {
  const hashes = new WeakMap<JsonObject, string>();
  const compiled = new Map<string, Compiled>();

  function hashOf(schema: JsonObject): string {
    let hash = hashes.get(schema);
    if (hash === undefined) {
      hash = createHash("sha256").update(stringifyJson(schema)).digest("base64");
      hashes.set(schema, hash);
    }
    return hash;
  }

  return (schema) => {
    const hash = hashOf(schema);
    const found = compiled.get(hash) ?? make(schema);
    compiled.delete(hash);
    compiled.set(hash, found);
    for (const oldest of compiled.keys()) {
      if (compiled.size <= limit) break;
      compiled.delete(oldest);
    }
    return found;
  };
}

/** Goes on until there is an outcome. Others have their turn before each slice. */
async function inSlices<T>(go: () => T | undefined, signal: AbortSignal): Promise<T> {
  for (;;) {
    await setImmediate();
    signal.throwIfAborted();
    const outcome = go();
    if (outcome !== undefined) return outcome;
  }
}

/** The check of a call's arguments, slice by slice. */
class ArgumentCheck {
  readonly #compiled: Compiled;
  readonly #args: JsonObject;
  #begun: { readonly copy: ArgumentCopy<JsonObject>; readonly run: SlicedRun } | undefined;
  /** Whether a `null` that the schema refuses has been taken for absent. */
  #again = false;

  constructor(compiled: Compiled, args: JsonObject) {
    this.#compiled = compiled;
    this.#args = args;
  }

  /** Goes on for a slice; `undefined`: there is more to do. */
  go(): ArgumentsOutcome | undefined {
    try {
      return this.#go();
    } catch (error) {
      if (error instanceof ArgumentsTooLarge) return refuse(error.message);
      if (error instanceof WorkLimitReached) {
        return refuse("the arguments take too long to check; send fewer or shorter values");
      }
      throw error;
    }
  }

  #go(): ArgumentsOutcome | undefined {
    this.#begun ??= this.#begin(new ArgumentCopy(this.#args));
    const { copy, run } = this.#begun;
    const errors = run.go();
    if (errors === undefined) return undefined;
    if (!this.#again && errors.length > 0 && copy.holdsNull && copy.dropNulls(nullPlaces(errors))) {
      this.#again = true;
      this.#begun = this.#begin(copy);
      return this.#go();
    }
    if (errors.length === 0) return { ok: true, value: copy.finish() };
    return { ok: false, violations: violationsOf(errors) };
  }

  #begin(copy: ArgumentCopy<JsonObject>): { readonly copy: ArgumentCopy<JsonObject>; readonly run: SlicedRun } {
    const { defaults, validator } = this.#compiled;
    defaults.complete(copy, !this.#again);
    return { copy, run: validator.hold(copy) };
  }
}

/** Where a `null` stands that some schema refuses. There may be a million errors. */
function nullPlaces(errors: readonly SchemaError[]): ReadonlySet<string> {
  const places = new Set<string>();
  const look = ({ data, instancePath, parts }: SchemaError): void => {
    if (data === null) places.add(instancePath);
    for (const part of parts) part.forEach(look);
  };
  errors.forEach(look);
  return places;
}

function refuse(description: string): ArgumentsOutcome {
  return { ok: false, violations: [violation("", "TOO_LARGE", description)] };
}
