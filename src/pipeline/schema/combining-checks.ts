import { isJsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import {
  attempt,
  type Check,
  inTurn,
  type Keyword,
  type MakeCheck,
  type Place,
  type Run,
  type SchemaError,
  type SchemaPart,
  type Seen,
  type Trial,
  textOf,
} from "./check.ts";

/** Keywords that hold the same value against other schemas, in the order in which their errors are told. */
export const COMBINING_CHECKS: ReadonlyMap<string, MakeCheck> = new Map<string, MakeCheck>([
  ["$ref", refCheck],
  ["not", notCheck],
  ["anyOf", anyOfCheck],
  ["oneOf", oneOfCheck],
  ["allOf", allOfCheck],
  ["if", ifCheck],
]);

function refCheck(keyword: Keyword): Check {
  const target = keyword.target(textOf(keyword.value));
  return (place, run, seen) => target.hold(place, run, seen);
}

function notCheck(keyword: Keyword): Check {
  const part = keyword.part(keyword.value);
  return (place, run) =>
    attempt(part, run, {
      place,
      seen: undefined,
      judge(errors) {
        if (errors.length === 0) keyword.fail(place, run);
      },
    });
}

function allOfCheck(keyword: Keyword): Check {
  const parts = partsOf(keyword);
  return (place, run, seen) => inTurn(parts, run, { take: (part) => part.hold(place, run, seen) });
}

/** A value that is held against alternatives. */
class Choice implements Trial {
  readonly place: Place;
  readonly seen: Seen | undefined;
  /** Of each alternative that does not fit. */
  readonly errors: (readonly SchemaError[])[] = [];
  /** Alternatives that fit. */
  fitting = 0;

  constructor(place: Place, seen: Seen | undefined) {
    this.place = place;
    this.seen = seen;
  }

  judge(errors: readonly SchemaError[]): void {
    if (errors.length > 0) this.errors.push(errors);
    else this.fitting++;
  }
}

/** Alternatives, and what is said of how many of them fit. */
interface Alternatives {
  readonly parts: readonly SchemaPart[];
  /** Whether the others need not be looked at. */
  enough(choice: Choice): boolean;
  end(choice: Choice, run: Run): void;
}

function choose(alternatives: Alternatives, run: Run, choice: Choice, from = 0): void {
  const { parts } = alternatives;
  for (let i = from; i < parts.length && !alternatives.enough(choice); i++) {
    attempt(parts[i] as SchemaPart, run, choice);
    if (run.paused) return run.later(() => choose(alternatives, run, choice, i + 1));
  }
  alternatives.end(choice, run);
}

function anyOfCheck(keyword: Keyword): Check {
  const alternatives: Alternatives = {
    parts: partsOf(keyword),
    // Once one fits, the others count only for what they look at.
    enough: ({ fitting, seen }) => fitting > 0 && seen === undefined,
    end({ place, fitting, errors }, run) {
      if (fitting === 0) keyword.fail(place, run, {}, errors);
    },
  };
  return (place, run, seen) => choose(alternatives, run, new Choice(place, seen));
}

function oneOfCheck(keyword: Keyword): Check {
  const alternatives: Alternatives = {
    parts: partsOf(keyword),
    enough: ({ fitting }) => fitting > 1,
    end({ place, fitting, errors }, run) {
      if (fitting > 1) keyword.fail(place, run);
      else if (fitting === 0) keyword.fail(place, run, {}, errors);
    },
  };
  return (place, run, seen) => choose(alternatives, run, new Choice(place, seen));
}

function ifCheck(keyword: Keyword): Check {
  const { schema } = keyword;
  const condition = keyword.part(keyword.value);
  const holding = keyword.part(ownValue(schema, "then") ?? true);
  const otherwise = keyword.part(ownValue(schema, "else") ?? true);
  return (place, run, seen) =>
    attempt(condition, run, {
      place,
      seen,
      judge: (errors) => (errors.length === 0 ? holding : otherwise).hold(place, run, seen),
    });
}

function partsOf(keyword: Keyword): readonly SchemaPart[] {
  return (keyword.value as readonly JsonValue[]).map((schema) => keyword.part(schema));
}

/** Schemas by the name of a property that brings them in, and lists of names: `dependentSchemas`, `dependencies`. */
export function dependentParts(keyword: Keyword): readonly (readonly [name: string, part: SchemaPart])[] {
  const entries = isJsonObject(keyword.value) ? Object.entries(keyword.value) : [];
  return entries.flatMap(([name, schema]): [string, SchemaPart][] =>
    Array.isArray(schema) ? [] : [[name, keyword.part(schema)]],
  );
}
