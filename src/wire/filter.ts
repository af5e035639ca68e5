import type { ToolFilter } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { ToolView } from "../core/registry.ts";
import { KIND_NUMBERS, STATE_NUMBERS } from "./enums.ts";
import { requestInvalid } from "./request-error.ts";

/** Most entries of each list of a filter. */
const MAX_ENTRIES = 100;
/** Longest name of a toolset. */
const MAX_TOOLSET_LENGTH = 64;
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
  const names = texts("filter.names", filter?.names ?? [], { what: "glob", most: MAX_GLOB_LENGTH });
  const toolsets = texts("filter.toolsets", filter?.toolsets ?? [], { what: "name", most: MAX_TOOLSET_LENGTH });
  const labels = Object.entries(filter?.labels ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  refuseTooMany("filter.labels", labels.length);
  const kinds = words("filter.kinds", filter?.kinds ?? [], KIND_NUMBERS);
  const states = words("filter.states", filter?.states ?? [], STATE_NUMBERS);
  return {
    key: JSON.stringify([names, [...kinds].toSorted(), labels, [...states].toSorted(), toolsets]),
    matches: ({ definition, availability }) =>
      (states.size === 0 ? availability.state !== "disabled" : states.has(availability.state)) &&
      (kinds.size === 0 || kinds.has(definition.kind)) &&
      (toolsets.length === 0 || definition.toolsets.some((name) => toolsets.includes(name))) &&
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

/** Each text once, in order. */
function texts(
  field: string,
  given: readonly string[],
  { what, most }: { readonly what: string; readonly most: number },
): readonly string[] {
  const distinct = [...new Set(given)].toSorted();
  refuseTooMany(field, distinct.length);
  for (const text of distinct) {
    if (text === "") throw requestInvalid(field, "MISSING", `holds an empty ${what}; leave it out to have all tools`);
    if (text.length > most) throw requestInvalid(field, "TOO_LONG", `holds a ${what} of more than ${most} characters`);
  }
  return distinct;
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
