import type { Access } from "./access.ts";
import { fitsName, isNamePattern } from "./name-pattern.ts";

/** A named set of tools. */
export interface Toolset {
  readonly name: string;
  /** For people. Empty: none. */
  readonly description: string;
  /** Names and patterns of names, as {@link fitsName} reads them. */
  readonly tools: readonly string[];
  /** Names of toolsets whose tools are in this one, too. */
  readonly includes: readonly string[];
  /** Whether every other toolset has its tools, too. */
  readonly base: boolean;
  /** Who may see and call the tools that it names, where they do not say so themselves. Absent: it says nothing. */
  readonly access: Access | undefined;
}

/** The toolsets a tool is in. */
export interface Membership {
  /** In code-unit order. */
  readonly names: readonly string[];
  /** Those that name the tool themselves, or that it names: whose rules of access count. */
  readonly sets: readonly Toolset[];
}

/** Most answers that are kept. */
const MAX_KEPT = 10_000;

const NONE: Membership = { names: [], sets: [] };

/** Which tool is in which toolsets. Immutable. */
export class Toolsets {
  readonly #sets: ReadonlyMap<string, Toolset>;
  /** Toolsets by the tools they name. */
  readonly #byTool = new Map<string, string[]>();
  readonly #patterns: (readonly [pattern: string, set: string])[] = [];
  /** Of each toolset those that have its tools: itself, and those that include it over any number of steps. */
  readonly #holders: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #memberships = new Map<string, Membership>();

  /** @param sets whose `includes` are names among them and lead to no cycle. */
  constructor(sets: Iterable<Toolset>) {
    this.#sets = new Map([...sets].map((set) => [set.name, set]));
    for (const { name, tools } of this.#sets.values()) {
      for (const tool of tools) {
        if (isNamePattern(tool)) this.#patterns.push([tool, name]);
        else this.#byTool.set(tool, [...(this.#byTool.get(tool) ?? []), name]);
      }
    }
    this.#holders = holdersOf(this.#sets);
  }

  static readonly none = new Toolsets([]);

  /** How many there are. */
  get size(): number {
    return this.#sets.size;
  }

  /** All names, in the order they were given. */
  get names(): readonly string[] {
    return [...this.#sets.keys()];
  }

  /** The toolset of a name. */
  named(name: string): Toolset | undefined {
    return this.#sets.get(name);
  }

  /** Every tool that is named, not by a pattern, with the toolsets that name it. */
  get namedTools(): ReadonlyMap<string, readonly string[]> {
    return this.#byTool;
  }

  /** What a tool is in. Tools in the same toolsets share one answer. `declared`: toolsets that the tool says it is in. */
  of(tool: string, declared: readonly string[] = []): Membership {
    const direct = new Set(declared);
    for (const set of this.#byTool.get(tool) ?? []) direct.add(set);
    for (const [pattern, set] of this.#patterns) if (fitsName(pattern, tool)) direct.add(set);
    if (direct.size === 0) return NONE;
    const key = [...direct].toSorted().join(" ");
    const known = this.#memberships.get(key) ?? this.#membershipOf(direct);
    if (this.#memberships.size < MAX_KEPT) this.#memberships.set(key, known);
    return known;
  }

  #membershipOf(direct: ReadonlySet<string>): Membership {
    // One that no settings know is there by its name alone.
    const inside = new Set([...direct].flatMap((set) => [set, ...(this.#holders.get(set) ?? [])]));
    const everywhere = [...inside].some((name) => this.#sets.get(name)?.base === true);
    const sets = [...direct].toSorted().flatMap((name) => this.#sets.get(name) ?? []);
    return { names: [...new Set([...inside, ...(everywhere ? this.#sets.keys() : [])])].toSorted(), sets };
  }
}

function holdersOf(sets: ReadonlyMap<string, Toolset>): ReadonlyMap<string, ReadonlySet<string>> {
  const holders = new Map([...sets.keys()].map((name) => [name, new Set([name])]));
  for (const name of sets.keys()) {
    const open = [...(sets.get(name)?.includes ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const known = holders.get(next);
      if (known === undefined || known.has(name)) continue;
      known.add(name);
      open.push(...(sets.get(next)?.includes ?? []));
    }
  }
  return holders;
}

/** The first chain of `includes` that comes back to where it began, as names; absent: there is none. */
export function includeCycle(sets: ReadonlyMap<string, Pick<Toolset, "includes">>): readonly string[] | undefined {
  const done = new Set<string>();
  for (const start of sets.keys()) {
    const cycle = cycleFrom(start, sets, done);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

/** Walks without recursion, since a chain may be as long as there are toolsets. */
function cycleFrom(
  start: string,
  sets: ReadonlyMap<string, Pick<Toolset, "includes">>,
  done: Set<string>,
): readonly string[] | undefined {
  const path = [{ name: start, next: 0 }];
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const child = sets.get(top.name)?.includes[top.next];
    top.next += 1;
    if (child === undefined) {
      done.add(top.name);
      path.pop();
      continue;
    }
    const from = path.findIndex(({ name }) => name === child);
    if (from >= 0) return [...path.slice(from).map(({ name }) => name), child];
    if (!done.has(child)) path.push({ name: child, next: 0 });
  }
  return undefined;
}
