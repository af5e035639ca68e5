import type { ToolFilter } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { ToolView } from "../core/registry.ts";
import { KIND_NUMBERS, STATE_NUMBERS } from "./enums.ts";
import { requestInvalid } from "./request-error.ts";

/** Most entries of each list of a filter. */
const MAX_ENTRIES = 100;
/** Longest glob; names have at most 129 characters. */
const MAX_GLOB_LENGTH = 256;

/** Which tools a caller asked for. */
export interface ToolSelection {
  matches(view: ToolView): boolean;
  /** Equal for filters that select alike: binds a page token to its filter. */
  readonly key: string;
}

/**
 * Reads a filter. Absent, or without states: every tool that is not disabled.
 *
 * @throws GatewayError REQUEST_INVALID for too many or too long entries and for enum values that are unspecified or unknown.
 */
export function toolSelection(filter: ToolFilter | undefined): ToolSelection {
  const names = [...new Set(filter?.names ?? [])].toSorted();
  const labels = Object.entries(filter?.labels ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  refuseTooMany("filter.names", names.length);
  refuseTooMany("filter.labels", labels.length);
  for (const name of names) {
    if (name === "") throw requestInvalid("filter.names", "MISSING", "holds an empty glob; write `*` for any name");
    if (name.length > MAX_GLOB_LENGTH) {
      throw requestInvalid("filter.names", "TOO_LONG", `holds a glob of more than ${MAX_GLOB_LENGTH} characters`);
    }
  }
  const kinds = words("filter.kinds", filter?.kinds ?? [], KIND_NUMBERS);
  const states = words("filter.states", filter?.states ?? [], STATE_NUMBERS);
  return {
    key: JSON.stringify([names, [...kinds].toSorted(), labels, [...states].toSorted()]),
    matches: ({ definition, availability }) =>
      (states.size === 0 ? availability.state !== "disabled" : states.has(availability.state)) &&
      (kinds.size === 0 || kinds.has(definition.kind)) &&
      labels.every(([key, value]) => Object.hasOwn(definition.labels, key) && definition.labels[key] === value) &&
      (names.length === 0 || names.some((glob) => matchesGlob(glob, definition.name))),
  };
}

/**
 * Whether the whole text matches a glob in which `*` stands for any characters and `?` for one. Goes back to the last
 * `*` only, so the time is at most the product of both lengths whatever the glob.
 */
export function matchesGlob(glob: string, text: string): boolean {
  let g = 0;
  let t = 0;
  let star = -1;
  let starText = 0;
  while (t < text.length) {
    const wanted = glob[g];
    if (wanted === "*") {
      star = g++;
      starText = t;
    } else if (wanted === "?" || wanted === text[t]) {
      g++;
      t++;
    } else if (star >= 0) {
      g = star + 1;
      t = ++starText;
    } else return false;
  }
  while (glob[g] === "*") g++;
  return g === glob.length;
}

function refuseTooMany(field: string, count: number): void {
  if (count > MAX_ENTRIES) {
    throw requestInvalid(field, "TOO_MANY", `may have at most ${MAX_ENTRIES} entries, got ${count}`);
  }
}

const NO_WORDS: ReadonlySet<string> = new Set();

/** Numbers of an enum as the words of core. */
function words<W extends string>(
  field: string,
  numbers: readonly number[],
  table: Readonly<Record<W, number>>,
): ReadonlySet<string> {
  if (numbers.length === 0) return NO_WORDS;
  const byNumber = new Map(Object.entries<number>(table).map(([word, number]) => [number, word]));
  const found = new Set<string>();
  for (const number of numbers) {
    const word = byNumber.get(number);
    if (word === undefined) {
      const allowed = [...byNumber].map(([value, name]) => `${name.toUpperCase()} (${value})`).join(", ");
      throw requestInvalid(field, "UNKNOWN_VALUE", `takes ${allowed}, got ${number}`);
    }
    found.add(word);
  }
  return found;
}
