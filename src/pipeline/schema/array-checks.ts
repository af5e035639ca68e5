import { isJsonArray, type JsonValue, ownValue } from "../../core/json.ts";
import { attempt, type Check, child, inTurn, type Keyword, type MakeCheck, type Place, type Run } from "./check.ts";
import { identityOf } from "./value-checks.ts";

/** Keywords of arrays, in the order in which their errors are told. */
export const ARRAY_CHECKS: ReadonlyMap<string, MakeCheck> = new Map<string, MakeCheck>([
  ["minItems", countCheck((count, limit) => count >= limit)],
  ["maxItems", countCheck((count, limit) => count <= limit)],
  ["uniqueItems", uniqueCheck],
  ["prefixItems", (keyword) => (keyword.dialect === "2020-12" ? tupleCheck(keyword) : undefined)],
  ["additionalItems", additionalCheck],
  ["items", itemsCheck],
  ["contains", containsCheck],
]);

/** The same for what no other keyword has looked at. */
export const UNEVALUATED_ITEMS = "unevaluatedItems";

function countCheck(holds: (count: number, limit: number) => boolean): MakeCheck {
  return (keyword) => {
    const limit = Number(keyword.value);
    return (place, run) => {
      if (isJsonArray(place.value) && !holds(place.value.length, limit)) keyword.fail(place, run, { limit });
    };
  };
}

/** In linear time, whatever the items. */
function uniqueCheck(keyword: Keyword): Check | undefined {
  if (keyword.value !== true) return undefined;
  return (place, run) => {
    if (isJsonArray(place.value) && !allDiffer(place, place.value, run)) keyword.fail(place, run);
  };
}

function allDiffer(place: Place, list: readonly JsonValue[], run: Run): boolean {
  const known = new Set<JsonValue>();
  for (const [i, item] of list.entries()) known.add(identityOf(place, i, item, run));
  return known.size === list.length;
}

/** A schema for each of the first items. */
function tupleCheck(keyword: Keyword): Check {
  const parts = (keyword.value as readonly JsonValue[]).map((schema) => keyword.part(schema));
  return (place, run, seen) => {
    const { value } = place;
    if (!isJsonArray(value)) return;
    inTurn(parts.slice(0, value.length), run, {
      take(part, i) {
        seen?.index(i);
        part.hold(child(place, i, value[i] ?? null), run, undefined);
      },
    });
  };
}

function itemsCheck(keyword: Keyword): Check {
  if (isJsonArray(keyword.value)) return tupleCheck(keyword);
  const first = keyword.dialect === "2020-12" ? ownValue(keyword.schema, "prefixItems") : undefined;
  return restCheck(keyword, isJsonArray(first) ? first.length : 0);
}

/** Means something in draft-07 alone, and behind a list of `items`. */
function additionalCheck(keyword: Keyword): Check | undefined {
  const first = ownValue(keyword.schema, "items");
  return keyword.dialect === "draft-07" && isJsonArray(first) ? restCheck(keyword, first.length) : undefined;
}

/** One schema for all items from an index on. */
function restCheck(keyword: Keyword, from: number): Check {
  const part = keyword.part(keyword.value);
  const none = keyword.value === false && from > 0;
  const holdFrom = (start: number, list: readonly JsonValue[], place: Place, run: Run): void => {
    for (let i = start; i < list.length; i++) {
      part.hold(child(place, i, list[i] ?? null), run, undefined);
      if (run.paused) return run.later(() => holdFrom(i + 1, list, place, run));
    }
  };
  return (place, run, seen) => {
    if (!isJsonArray(place.value)) return;
    seen?.allIndexes();
    if (!none) holdFrom(from, place.value, place, run);
    else if (place.value.length > from) keyword.fail(place, run, { limit: from });
  };
}

function containsCheck(keyword: Keyword): Check {
  const part = keyword.part(keyword.value);
  const count = (name: string): number | undefined => {
    const value = keyword.dialect === "2020-12" ? ownValue(keyword.schema, name) : undefined;
    return value === undefined ? undefined : Number(value);
  };
  const minContains = count("minContains") ?? 1;
  const maxContains = count("maxContains") ?? Number.POSITIVE_INFINITY;
  return (place, run, seen) => {
    if (!isJsonArray(place.value)) return;
    let found = 0;
    inTurn(place.value, run, {
      take: (item, i) =>
        attempt(part, run, {
          place: child(place, i, item),
          seen: undefined,
          judge(errors) {
            if (errors.length > 0) return;
            found++;
            seen?.index(i);
          },
        }),
      end() {
        if (found < minContains || found > maxContains) keyword.fail(place, run);
      },
    });
  };
}

/** Runs last, when all others have told what they looked at. */
export function unevaluatedItemsCheck(keyword: Keyword): Check {
  const part = keyword.part(keyword.value);
  return (place, run, seen) => {
    if (!isJsonArray(place.value) || seen === undefined) return;
    inTurn(place.value, run, {
      take(item, i) {
        if (!seen.hasIndex(i)) part.hold(child(place, i, item), run, undefined);
      },
      end: () => seen.allIndexes(),
    });
  };
}
