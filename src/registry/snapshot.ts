import type { DeclarationProblem } from "../core/registry.ts";
import type { ToolEntry } from "./tool-entry.ts";

/** All tools and problems at one moment. Replaced, never edited: whoever holds one sees it unchanged. */
export class Snapshot {
  /** In code-unit order of name. */
  readonly tools: readonly ToolEntry[];
  /** Those that have another alias than their name, in code-unit order of alias. */
  readonly #byAlias: readonly ToolEntry[];
  readonly #problems: ReadonlyMap<string, readonly DeclarationProblem[]>;
  #problemList: readonly DeclarationProblem[] | undefined;

  private constructor(
    tools: readonly ToolEntry[],
    byAlias: readonly ToolEntry[],
    problems: ReadonlyMap<string, readonly DeclarationProblem[]>,
  ) {
    this.tools = tools;
    this.#byAlias = byAlias;
    this.#problems = problems;
  }

  static readonly empty = new Snapshot([], [], new Map());

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
    const fresh = [...changes.values()].filter((entry) => entry !== undefined);
    const others = (entry: ToolEntry): boolean => !changes.has(entry.definition.name);
    const aliased = fresh.filter((entry) => entry.definition.alias !== entry.definition.name);
    return new Snapshot(
      merge(this.tools.filter(others), fresh, nameOf),
      merge(this.#byAlias.filter(others), aliased, aliasOf),
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
    return new Snapshot(this.tools, this.#byAlias, problems);
  }
}

const nameOf = (entry: ToolEntry): string => entry.definition.name;
const aliasOf = (entry: ToolEntry): string => entry.definition.alias;

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

/** Merges unsorted entries into a sorted list. */
function merge(
  sorted: readonly ToolEntry[],
  added: readonly ToolEntry[],
  keyOf: (entry: ToolEntry) => string,
): ToolEntry[] {
  const fresh = added.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const merged: ToolEntry[] = [];
  let next = 0;
  for (const entry of sorted) {
    for (let first = fresh[next]; first !== undefined && keyOf(first) < keyOf(entry); first = fresh[++next]) {
      merged.push(first);
    }
    merged.push(entry);
  }
  return merged.concat(fresh.slice(next));
}
