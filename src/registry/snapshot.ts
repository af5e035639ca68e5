import type { Principal } from "../core/principal.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import { Audiences } from "./audiences.ts";
import type { ToolEntry } from "./tool-entry.ts";

/** All tools and problems at one moment. Replaced, never edited: whoever holds one sees it unchanged. */
export class Snapshot {
  /** In code-unit order of name; servers and tools that are not listed among them. */
  readonly tools: readonly ToolEntry[];
  /** Those that have another alias than their name, in code-unit order of alias. */
  readonly #byAlias: readonly ToolEntry[];
  readonly #problems: ReadonlyMap<string, readonly DeclarationProblem[]>;
  readonly #audiences: Audiences;
  #problemList: readonly DeclarationProblem[] | undefined;

  private constructor(
    tools: readonly ToolEntry[],
    byAlias: readonly ToolEntry[],
    problems: ReadonlyMap<string, readonly DeclarationProblem[]>,
    audiences = new Audiences({ tools, byAlias }),
  ) {
    this.#audiences = audiences;
    this.tools = tools;
    this.#byAlias = byAlias;
    this.#problems = problems;
  }

  static readonly empty = new Snapshot([], [], new Map());

  /** The same for a principal: with the tools it may see, as if there were no others. */
  visibleTo(principal: Principal): Snapshot {
    const { tools, byAlias } = this.#audiences.of(principal);
    return tools === this.tools ? this : new Snapshot(tools, byAlias, this.#problems, this.#audiences);
  }

  /** The tool of this name. */
  named(name: string): ToolEntry | undefined {
    return search(this.tools, name, nameOf);
  }

  /** The tool of this name, or else of this alias. */
  find(nameOrAlias: string): ToolEntry | undefined {
    return this.named(nameOrAlias) ?? search(this.#byAlias, nameOrAlias, aliasOf);
  }

  /** At most so many names of tools, those around a name's place in the order of names. */
  namesAround(name: string, limit: number): readonly string[] {
    const start = Math.max(0, Math.min(placeOf(this.tools, name, nameOf) - limit / 2, this.tools.length - limit));
    return this.tools.slice(start, start + limit).map(nameOf);
  }

  /** Problems of one source. */
  problemsOf(source: string): readonly DeclarationProblem[] {
    return this.#problems.get(source) ?? [];
  }

  /** Problems of all sources, in code-unit order of source. */
  get problems(): readonly DeclarationProblem[] {
    this.#problemList ??= [...this.#problems.keys()].toSorted().flatMap((source) => this.problemsOf(source));
    return this.#problemList;
  }

  /** A snapshot with these names set to these tools, or without them. A few changes among 10,000 tools are cheap. */
  withTools(changes: ReadonlyMap<string, ToolEntry | undefined>): Snapshot {
    if (changes.size === 0) return this;
    const aliases = new Map<string, ToolEntry | undefined>();
    for (const name of changes.keys()) {
      const before = this.named(name);
      if (before !== undefined && hasAlias(before)) aliases.set(before.definition.alias, undefined);
    }
    for (const entry of changes.values()) {
      if (entry !== undefined && hasAlias(entry)) aliases.set(entry.definition.alias, entry);
    }
    return new Snapshot(
      replaced(this.tools, changes, nameOf),
      replaced(this.#byAlias, aliases, aliasOf),
      this.#problems,
    );
  }

  /** A snapshot with these sources' problems replaced. */
  withProblems(changes: ReadonlyMap<string, readonly DeclarationProblem[]>): Snapshot {
    if (changes.size === 0) return this;
    const problems = new Map(this.#problems);
    for (const [source, list] of changes) {
      if (list.length === 0) problems.delete(source);
      else problems.set(source, list);
    }
    return new Snapshot(this.tools, this.#byAlias, problems, this.#audiences);
  }
}

const nameOf = (entry: ToolEntry): string => entry.definition.name;
const aliasOf = (entry: ToolEntry): string => entry.definition.alias;
const hasAlias = (entry: ToolEntry): boolean => aliasOf(entry) !== nameOf(entry);

function search(sorted: readonly ToolEntry[], key: string, keyOf: (entry: ToolEntry) => string): ToolEntry | undefined {
  const entry = sorted[placeOf(sorted, key, keyOf)];
  return entry !== undefined && keyOf(entry) === key ? entry : undefined;
}

/** Where a key stands in a sorted list, or would stand. */
function placeOf(sorted: readonly ToolEntry[], key: string, keyOf: (entry: ToolEntry) => string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = sorted[middle];
    if (entry !== undefined && keyOf(entry) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sorted list with the entries of these keys set, or taken out. Compares keys near the changes alone. */
function replaced(
  sorted: readonly ToolEntry[],
  changes: ReadonlyMap<string, ToolEntry | undefined>,
  keyOf: (entry: ToolEntry) => string,
): readonly ToolEntry[] {
  if (changes.size === 0) return sorted;
  const list: ToolEntry[] = [];
  let from = 0;
  for (const key of [...changes.keys()].toSorted()) {
    const at = placeOf(sorted, key, keyOf);
    for (const entry of sorted.slice(from, at)) list.push(entry);
    const there = sorted[at];
    from = there !== undefined && keyOf(there) === key ? at + 1 : at;
    const entry = changes.get(key);
    if (entry !== undefined) list.push(entry);
  }
  return list.concat(sorted.slice(from));
}
