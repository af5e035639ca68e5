import { isJsonArray, isJsonObject, type JsonValue, ownValue } from "../core/json.ts";

/** One step of a path: a name, or an index written in brackets. */
type PathStep = string | number;

/** A dotted path, parsed. */
export interface FieldPath {
  readonly text: string;
  readonly steps: readonly PathStep[];
}

/** Outcome of following a path. */
export type FieldFound =
  | { readonly found: true; readonly value: JsonValue }
  | {
      readonly found: false;
      /** The part of the path that exists; empty: the answer itself. */
      readonly at: string;
      /** What stands there. */
      readonly value: JsonValue;
    };

/**
 * Parses a path such as `data.items[0].id`: names joined by dots, and list indexes, from 0, as `[0]` or `.0`.
 * `undefined` where it is none.
 */
export function parseFieldPath(text: string): FieldPath | undefined {
  if (!/^[^.[\]]+(?:\.[^.[\]]+|\[\d{1,9}\])*$/.test(text)) return undefined;
  const steps = [...text.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([name, index]) =>
    index === undefined ? name : Number(index),
  );
  return { text, steps };
}

/**
 * Follows a path through own properties only: a name in an object, an index in a list. `.0` is a name in an object and
 * an index in a list; `[0]` is an index and nothing else.
 */
export function followPath(value: JsonValue, path: FieldPath): FieldFound {
  let at = "";
  let here = value;
  for (const step of path.steps) {
    const next = child(here, step);
    if (next === undefined) return { found: false, at, value: here };
    here = next;
    at = typeof step === "number" ? `${at}[${step}]` : at === "" ? step : `${at}.${step}`;
  }
  return { found: true, value: here };
}

function child(value: JsonValue, step: PathStep): JsonValue | undefined {
  if (isJsonArray(value)) return typeof step === "number" || /^\d{1,9}$/.test(step) ? value[Number(step)] : undefined;
  return isJsonObject(value) && typeof step === "string" ? ownValue(value, step) : undefined;
}
