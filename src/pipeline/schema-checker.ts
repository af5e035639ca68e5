import { createHash } from "node:crypto";
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
import { violationsOf } from "./schema/violations.ts";
import { WorkLimitReached } from "./schema/work-meter.ts";

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

/** Checks schemas when tools are loaded, and arguments when they are called. */
export interface SchemaChecker {
  /**
   * What is wrong with a schema, in one line; `undefined` where it can be used. Understands draft-07 and 2020-12, by
   * `$schema` (default 2020-12); unknown keywords and formats mean nothing. Refuses other dialects, references out of
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
  /**
   * Where a result does not fit a schema, as it stands: nothing is filled in and no `null` left out. `undefined`: not
   * to be told, since the schema cannot be used or the result has too much in it, by the limits of `check`.
   */
  mismatches(schema: JsonObject, value: JsonValue): readonly FieldViolation[] | undefined;
}

/** A schema ready to be used. */
interface Compiled {
  readonly validator: Validator;
  readonly defaults: Defaults;
}

/**
 * Makes a checker that keeps at most `maxCompiled` compiled schemas, those used last; equal schemas share one. Takes
 * about 100 ms, for the meta-schemas.
 */
export function createSchemaChecker(options: { readonly maxCompiled: number }): SchemaChecker {
  const tools: ReadTools = { meta: createMetaChecker(), compilePattern: rememberPatterns(MAX_PATTERNS) };
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

  function compile(schema: JsonObject): Compiled {
    const outcome = readSchema(schema, tools);
    if (!outcome.ok) throw new GatewayError("INTERNAL", `input schema cannot be used: ${outcome.problem}`);
    try {
      return { validator: compileSchema(outcome.ready), defaults: createDefaults(outcome.ready.schema) };
    } catch (cause) {
      throw new GatewayError("INTERNAL", "input schema cannot be compiled", { cause });
    }
  }

  function compiledOf(schema: JsonObject): Compiled {
    const hash = hashOf(schema);
    const found = compiled.get(hash) ?? compile(schema);
    compiled.delete(hash);
    compiled.set(hash, found);
    for (const oldest of compiled.keys()) {
      if (compiled.size <= options.maxCompiled) break;
      compiled.delete(oldest);
    }
    return found;
  }

  return {
    problem: (schema) => schemaProblem(schema, tools),
    compilePattern(source) {
      const outcome = tools.compilePattern(source);
      return outcome.ok ? outcome.work : 0;
    },
    check(schema, args) {
      const { validator, defaults } = compiledOf(schema);
      try {
        return checkArguments(validator, defaults, args);
      } catch (error) {
        if (error instanceof ArgumentsTooLarge) return refuse(error.message);
        if (error instanceof WorkLimitReached) {
          return refuse("the arguments take too long to check; send fewer or shorter values");
        }
        throw error;
      }
    },
    mismatches: (schema, value) => resultMismatches(() => compiledOf(schema).validator, value),
  };
}

function resultMismatches(validator: () => Validator, value: JsonValue): readonly FieldViolation[] | undefined {
  try {
    const copy = new ArgumentCopy(typeof value === "bigint" ? Number(value) : value);
    return violationsOf(validator().errors(copy));
  } catch (error) {
    const isKnown = error instanceof GatewayError || error instanceof ArgumentsTooLarge;
    if (isKnown || error instanceof WorkLimitReached) return undefined;
    throw error;
  }
}

function checkArguments(validator: Validator, defaults: Defaults, args: JsonObject): ArgumentsOutcome {
  const copy = new ArgumentCopy(args);
  defaults.complete(copy, true);
  let errors = validator.errors(copy);
  const nulls = nullPlaces(errors);
  if (nulls.length > 0 && copy.dropNulls(nulls)) {
    defaults.complete(copy, false);
    errors = validator.errors(copy);
  }
  if (errors.length === 0) return { ok: true, value: copy.finish() };
  return { ok: false, violations: violationsOf(errors) };
}

/** Where a `null` stands that some schema refuses. */
function nullPlaces(errors: readonly SchemaError[]): readonly string[] {
  return errors.flatMap(({ data, instancePath, parts }) => {
    return [...(data === null ? [instancePath] : []), ...parts.flatMap(nullPlaces)];
  });
}

function refuse(description: string): ArgumentsOutcome {
  return { ok: false, violations: [violation("", "TOO_LARGE", description)] };
}
