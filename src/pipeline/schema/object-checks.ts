import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import {
  attempt,
  type Check,
  child,
  inTurn,
  type Keyword,
  type MakeCheck,
  type Place,
  type Run,
  type Seen,
} from "./check.ts";
import { dependentParts } from "./combining-checks.ts";
import type { LinearPattern } from "./linear-pattern.ts";

/** Keywords of objects, in the order in which their errors are told. */
export const OBJECT_CHECKS: ReadonlyMap<string, MakeCheck> = new Map<string, MakeCheck>([
  ["minProperties", countCheck((count, limit) => count >= limit)],
  ["maxProperties", countCheck((count, limit) => count <= limit)],
  ["required", requiredCheck],
  ["dependentRequired", (keyword) => (keyword.dialect === "2020-12" ? togetherCheck(keyword) : undefined)],
  ["dependencies", (keyword) => both(togetherCheck(keyword), dependentCheck(keyword))],
  ["dependentSchemas", (keyword) => (keyword.dialect === "2020-12" ? dependentCheck(keyword) : undefined)],
  ["propertyNames", namesCheck],
  ["additionalProperties", additionalCheck],
  ["properties", propertiesCheck],
  ["patternProperties", patternCheck],
]);

/** The same for what no other keyword has looked at. */
export const UNEVALUATED_PROPERTIES = "unevaluatedProperties";

function both(first: Check, second: Check): Check {
  return (place, run, seen) => {
    // The first, which is about names alone, never pauses.
    first(place, run, seen);
    second(place, run, seen);
  };
}

function countCheck(holds: (count: number, limit: number) => boolean): MakeCheck {
  return (keyword) => {
    const limit = Number(keyword.value);
    return (place, run) => {
      if (!isJsonObject(place.value)) return;
      if (!holds(Object.keys(place.value).length, limit)) keyword.fail(place, run, { limit });
    };
  };
}

function requiredCheck(keyword: Keyword): Check {
  const names = keyword.value as readonly string[];
  return (place, run) => {
    if (!isJsonObject(place.value)) return;
    for (const name of names) {
      if (!Object.hasOwn(place.value, name)) keyword.fail(place, run, { missingProperty: name });
    }
  };
}

/** Names that have to be there where another is. */
function togetherCheck(keyword: Keyword): Check {
  const lists = Object.entries(keyword.value as JsonObject).flatMap(([property, names]): [string, string[]][] =>
    isJsonArray(names) ? [[property, names.map(String)]] : [],
  );
  return (place, run) => {
    if (!isJsonObject(place.value)) return;
    for (const [property, names] of lists) {
      if (!Object.hasOwn(place.value, property)) continue;
      for (const name of names) {
        if (!Object.hasOwn(place.value, name)) keyword.fail(place, run, { property, missingProperty: name });
      }
    }
  };
}

function dependentCheck(keyword: Keyword): Check {
  const parts = dependentParts(keyword);
  return (place, run, seen) => {
    const { value } = place;
    if (!isJsonObject(value)) return;
    inTurn(parts, run, {
      take([name, part]) {
        if (Object.hasOwn(value, name)) part.hold(place, run, seen);
      },
    });
  };
}

function namesCheck(keyword: Keyword): Check {
  const part = keyword.part(keyword.value);
  return (place, run) => {
    if (!isJsonObject(place.value)) return;
    inTurn(Object.keys(place.value), run, {
      take(name) {
        attempt(part, run, {
          place: { value: name, parent: place, key: name, isName: true },
          seen: undefined,
          judge(errors) {
            if (errors.length > 0) keyword.fail(place, run, { propertyName: name }, [errors]);
          },
        });
      },
    });
  };
}

/** Names, and the object that may have them. */
interface NamedValues {
  readonly names: readonly string[];
  readonly value: JsonObject;
  readonly place: Place;
  readonly seen: Seen | undefined;
}

function propertiesCheck(keyword: Keyword): Check {
  const parts = new Map(
    Object.entries(keyword.value as JsonObject).map(([name, schema]) => [name, keyword.part(schema)]),
  );
  const declared = [...parts.keys()];
  const holdFrom = (start: number, named: NamedValues, run: Run): void => {
    const { names, value, place, seen } = named;
    for (let i = start; i < names.length; i++) {
      const name = names[i] ?? "";
      const part = Object.hasOwn(value, name) ? parts.get(name) : undefined;
      if (part === undefined) continue;
      seen?.name(name);
      part.hold(child(place, name, value[name] as JsonValue), run, undefined);
      if (run.paused) return run.later(() => holdFrom(i + 1, named, run));
    }
  };
  return (place, run, seen) => {
    const { value } = place;
    if (!isJsonObject(value)) return;
    // In the schema's order, so that mistakes are told in it, unless that would mean to go through thousands of names.
    const names = Object.keys(value);
    holdFrom(0, { names: parts.size <= 4 * names.length + 64 ? declared : names, value, place, seen }, run);
  };
}

function patternCheck(keyword: Keyword): Check {
  const parts = Object.entries(keyword.value as JsonObject).flatMap(([source, schema]) => {
    const pattern = keyword.patterns.get(source);
    return pattern === undefined ? [] : [{ pattern, part: keyword.part(schema) }];
  });
  return (place, run, seen) => {
    if (!isJsonObject(place.value)) return;
    inTurn(Object.entries(place.value), run, {
      take: ([name, value]) =>
        inTurn(parts, run, {
          take({ pattern, part }) {
            if (!matches(pattern, name, run)) return;
            seen?.name(name);
            part.hold(child(place, name, value), run, undefined);
          },
        }),
    });
  };
}

/** For names that neither `properties` nor `patternProperties` says something of. */
function additionalCheck(keyword: Keyword): Check | undefined {
  if (keyword.value === true) return (_place, _run, seen) => seen?.allNames();
  const part = keyword.part(keyword.value);
  const properties = ownValue(keyword.schema, "properties");
  const known: JsonObject = isJsonObject(properties) ? properties : {};
  const patterned = ownValue(keyword.schema, "patternProperties");
  const patterns = Object.keys(isJsonObject(patterned) ? patterned : {}).flatMap(
    (source) => keyword.patterns.get(source) ?? [],
  );
  return (place, run, seen) => {
    const { value } = place;
    if (!isJsonObject(value)) return;
    inTurn(Object.keys(value), run, {
      take(name) {
        if (Object.hasOwn(known, name) || patterns.some((pattern) => matches(pattern, name, run))) return;
        seen?.name(name);
        if (keyword.value === false) keyword.fail(place, run, { additionalProperty: name });
        else part.hold(child(place, name, value[name] as JsonValue), run, undefined);
      },
    });
  };
}

/** Runs last, when all others have told what they looked at. */
export function unevaluatedPropertiesCheck(keyword: Keyword): Check {
  const part = keyword.part(keyword.value);
  return (place, run, seen) => {
    if (!isJsonObject(place.value) || seen === undefined) return;
    inTurn(Object.entries(place.value), run, {
      take([name, value]) {
        if (seen.hasName(name)) return;
        if (keyword.value === false) keyword.fail(place, run, { unevaluatedProperty: name });
        else part.hold(child(place, name, value), run, undefined);
      },
      end: () => seen.allNames(),
    });
  };
}

function matches(pattern: LinearPattern, name: string, run: Run): boolean {
  run.meter.step();
  return pattern.test(name, run.meter);
}
