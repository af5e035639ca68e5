import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { type ArgumentCopy, ArgumentsTooLarge } from "./argument-copy.ts";
import { ARRAY_CHECKS, UNEVALUATED_ITEMS, unevaluatedItemsCheck } from "./array-checks.ts";
import {
  type Check,
  exactValue,
  type Keyword,
  type MakeCheck,
  type Place,
  pointerOf,
  type Run,
  type SchemaError,
  type SchemaPart,
  Seen,
} from "./check.ts";
import { COMBINING_CHECKS } from "./combining-checks.ts";
import { DEFS } from "./keywords.ts";
import { OBJECT_CHECKS, UNEVALUATED_PROPERTIES, unevaluatedPropertiesCheck } from "./object-checks.ts";
import type { ReadySchema } from "./read-schema.ts";
import { SlicedRun } from "./sliced-run.ts";
import { VALUE_CHECKS } from "./value-checks.ts";
import type { Slice } from "./work-meter.ts";

/** Most schemas held one inside the other: 128 levels of arguments may each go through a chain of references. */
const MAX_DEPTH = 1_500;

const CHECKS: readonly (readonly [keyword: string, make: MakeCheck])[] = [
  ...VALUE_CHECKS,
  ...COMBINING_CHECKS,
  ...ARRAY_CHECKS,
  ...OBJECT_CHECKS,
];

/** For what the others have not looked at, so these come last; draft-07 does not know them. */
const LAST_CHECKS: readonly (readonly [keyword: string, make: MakeCheck])[] = [
  [UNEVALUATED_ITEMS, unevaluatedItemsCheck],
  [UNEVALUATED_PROPERTIES, unevaluatedPropertiesCheck],
];

/** Holds arguments against one schema. */
export interface Validator {
  /** Begins to hold arguments against the schema. */
  hold(copy: ArgumentCopy): SlicedRun;
}

/**
 * Makes the validator of a schema. Takes no time: each schema inside it is made ready when the first value is held
 * against it, so a large one blocks nobody, and none of its parts is paid for before it is used.
 *
 * @param slice how long arguments are held against it at a stretch.
 */
export function compileSchema(ready: ReadySchema, slice: Slice): Validator {
  const root = createPart(ready.schema, createParts(ready));
  return { hold: (copy) => new SlicedRun(root, copy, slice) };
}

/** What the parts of one schema share. */
interface Parts {
  readonly ready: ReadySchema;
  target(reference: string): SchemaPart;
}

function createParts(ready: ReadySchema): Parts {
  const defs = ownValue(ready.schema, "$defs");
  const targets = new Map<string, SchemaPart>();
  const parts: Parts = {
    ready,
    target(reference) {
      const name = reference.slice(DEFS.length);
      const schema = defs !== undefined && isJsonObject(defs) ? ownValue(defs, name) : undefined;
      const part = targets.get(name) ?? createPart(schema ?? true, parts);
      targets.set(name, part);
      return part;
    },
  };
  return parts;
}

function createPart(schema: JsonValue, parts: Parts): SchemaPart {
  return isJsonObject(schema) ? new ObjectPart(schema, parts) : { hold: schema === false ? never : () => {} };
}

function never(place: Place, run: Run): void {
  run.errors.push(errorOf("false schema", false, place, run));
}

/** What was looked at of a value by the keywords of one schema, and by those around it. */
interface Looked {
  readonly own: Seen;
  readonly seen: Seen | undefined;
}

class ObjectPart implements SchemaPart {
  readonly #schema: JsonObject;
  readonly #parts: Parts;
  #checks: readonly Check[] | undefined;
  readonly #looksAtRest: boolean;

  constructor(schema: JsonObject, parts: Parts) {
    this.#schema = schema;
    this.#parts = parts;
    this.#looksAtRest =
      parts.ready.dialect === "2020-12" && LAST_CHECKS.some(([keyword]) => Object.hasOwn(schema, keyword));
  }

  hold(place: Place, run: Run, seen: Seen | undefined): void {
    if (run.meter.step()) run.later(() => this.#begin(place, run, seen));
    else this.#begin(place, run, seen);
  }

  #begin(place: Place, run: Run, seen: Seen | undefined): void {
    if (run.depth === MAX_DEPTH) throw new ArgumentsTooLarge("nested too deep for the tool's schema");
    this.#checks ??= this.#ready();
    run.depth++;
    // What the schemas around this one have looked at is none of its business.
    const looked = seen !== undefined || this.#looksAtRest ? { own: new Seen(), seen } : undefined;
    this.#check(place, run, looked, 0);
  }

  /** Holds a value against the keywords, from one of them on. */
  #check(place: Place, run: Run, looked: Looked | undefined, from: number): void {
    const checks = this.#checks ?? [];
    for (let i = from; i < checks.length && !run.paused; i++) {
      checks[i]?.(place, run, looked?.own);
      if (run.paused) run.later(() => this.#check(place, run, looked, i + 1));
    }
    run.depth--;
    if (!run.paused && looked !== undefined) looked.seen?.add(looked.own);
  }

  #ready(): readonly Check[] {
    const known = this.#looksAtRest ? [...CHECKS, ...LAST_CHECKS] : CHECKS;
    return known.flatMap(([keyword, make]) => {
      const value = ownValue(this.#schema, keyword);
      return value === undefined ? [] : (make(this.#keyword(keyword, value)) ?? []);
    });
  }

  #keyword(keyword: string, value: JsonValue): Keyword {
    const schema = this.#schema;
    const { ready, target } = this.#parts;
    return {
      value,
      schema,
      dialect: ready.dialect,
      patterns: ready.patterns,
      part: (part) => createPart(part, this.#parts),
      target,
      fail: (place, run, params, parts) => {
        run.errors.push({ ...errorOf(keyword, value, place, run), parentSchema: schema, ...more(params, parts) });
      },
    };
  }
}

function more(params: SchemaError["params"] = {}, parts: SchemaError["parts"] = []): Partial<SchemaError> {
  return { params, parts };
}

function errorOf(keyword: string, schema: JsonValue, place: Place, run: Run): SchemaError {
  return {
    keyword,
    instancePath: pointerOf(place),
    params: {},
    schema,
    parentSchema: undefined,
    data: exactValue(place, run),
    parts: [],
  };
}
