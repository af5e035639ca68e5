import { isJsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import {
  attempt,
  type Check,
  type Keyword,
  type MakeCheck,
  type SchemaError,
  type SchemaPart,
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
  return (place, run, seen) => void target.fits(place, run, seen);
}

function notCheck(keyword: Keyword): Check {
  const part = keyword.part(keyword.value);
  return (place, run) => {
    if (attempt(part, place, run, undefined).length === 0) keyword.fail(place, run);
  };
}

function allOfCheck(keyword: Keyword): Check {
  const parts = partsOf(keyword);
  return (place, run, seen) => {
    for (const part of parts) part.fits(place, run, seen);
  };
}

function anyOfCheck(keyword: Keyword): Check {
  const parts = partsOf(keyword);
  return (place, run, seen) => {
    const errors: (readonly SchemaError[])[] = [];
    for (const part of parts) {
      const found = attempt(part, place, run, seen);
      if (found.length > 0) errors.push(found);
      // The others count only for what they look at.
      else if (seen === undefined) return;
    }
    if (errors.length === parts.length) keyword.fail(place, run, {}, errors);
  };
}

function oneOfCheck(keyword: Keyword): Check {
  const parts = partsOf(keyword);
  return (place, run, seen) => {
    const errors: (readonly SchemaError[])[] = [];
    let fitting = 0;
    for (const part of parts) {
      const found = attempt(part, place, run, seen);
      if (found.length > 0) errors.push(found);
      else if (++fitting > 1) return keyword.fail(place, run);
    }
    if (fitting === 0) keyword.fail(place, run, {}, errors);
  };
}

function ifCheck(keyword: Keyword): Check {
  const { schema } = keyword;
  const condition = keyword.part(keyword.value);
  const holding = keyword.part(ownValue(schema, "then") ?? true);
  const otherwise = keyword.part(ownValue(schema, "else") ?? true);
  return (place, run, seen) => {
    const holds = attempt(condition, place, run, seen).length === 0;
    (holds ? holding : otherwise).fits(place, run, seen);
  };
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
