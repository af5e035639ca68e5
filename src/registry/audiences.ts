import { accessKey, isVisible } from "../core/access.ts";
import type { Principal } from "../core/principal.ts";
import { AliasTable } from "./names.ts";
import { buildDefinition, ToolEntry } from "./tool-entry.ts";

/** Most groups of callers whose tools are kept. */
const MAX_KEPT = 100;

/** The tools that some callers see. */
export interface AudienceTools {
  /** In code-unit order of name. */
  readonly tools: readonly ToolEntry[];
  /** Those that have another alias than their name, in code-unit order of alias. */
  readonly byAlias: readonly ToolEntry[];
}

/** What each principal sees of the same tools. Callers for whom the same rules hold see the same list. */
export class Audiences {
  /** Those that are listed, once somebody asks. */
  #all: AudienceTools;
  /** One tool of each rule there is; undefined until somebody asks. */
  #rules: readonly ToolEntry[] | undefined;
  readonly #kept = new Map<string, AudienceTools>();
  readonly #byPrincipal = new WeakMap<Principal, AudienceTools>();

  constructor(all: AudienceTools) {
    this.#all = all;
  }

  /** The tools a principal may see. */
  of(principal: Principal): AudienceTools {
    if (this.#rules === undefined) {
      this.#all = listedOf(this.#all);
      this.#rules = oneOfEachRule(this.#all.tools);
    }
    if (this.#rules.length === 0) return this.#all;
    const seen = this.#byPrincipal.get(principal) ?? this.#byRules(principal, this.#rules);
    this.#byPrincipal.set(principal, seen);
    return seen;
  }

  #byRules(principal: Principal, rules: readonly ToolEntry[]): AudienceTools {
    const key = rules.map(({ access }) => (isVisible(principal, access) ? "1" : "0")).join("");
    if (!key.includes("0")) return this.#all;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const seen = this.#filtered(principal);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size < MAX_KEPT) break;
      this.#kept.delete(oldest);
    }
    this.#kept.set(key, seen);
    return seen;
  }

  #filtered(principal: Principal): AudienceTools {
    const tools = withOwnAliases(this.#all.tools.filter(({ access }) => isVisible(principal, access)));
    return { tools, byAlias: aliased(tools) };
  }
}

/** What nobody may see has no part in what others do. */
function listedOf(all: AudienceTools): AudienceTools {
  if (all.tools.every(({ listed }) => listed)) return all;
  return { tools: all.tools.filter(({ listed }) => listed), byAlias: all.byAlias.filter(({ listed }) => listed) };
}

/** The entries that have another alias than their name, in code-unit order of alias. */
function aliased(tools: readonly ToolEntry[]): readonly ToolEntry[] {
  return tools
    .filter(({ definition }) => definition.alias !== definition.name)
    .toSorted((a, b) => (a.definition.alias < b.definition.alias ? -1 : 1));
}

/** Aliases as they are where only these tools exist: an alias with a hash would tell of a tool that is not seen. */
function withOwnAliases(tools: readonly ToolEntry[]): readonly ToolEntry[] {
  if (tools.every(({ definition }) => definition.alias === definition.name)) return tools;
  const aliases = new AliasTable();
  aliases.update(
    tools.map(({ definition }) => definition.name),
    [],
  );
  return tools.map((entry) => {
    const alias = aliases.aliasOf(entry.definition.name);
    return alias === entry.definition.alias
      ? entry
      : new ToolEntry(entry.claim, entry.open, buildDefinition(entry.claim, alias));
  });
}

function oneOfEachRule(tools: readonly ToolEntry[]): readonly ToolEntry[] {
  const rules = new Map<string, ToolEntry>();
  for (const entry of tools) if (entry.access !== undefined) rules.set(accessKey(entry.access), entry);
  return [...rules.values()];
}
