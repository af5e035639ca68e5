import type { JsonObject } from "../core/json.ts";
import { ownValue } from "../core/json.ts";
import { SharedResults } from "../core/shared-values.ts";
import type { DeclaredTool } from "../core/tool.ts";
import { type ParsedResultRules, parseResultRules } from "../shaping/result-rules.ts";
import type { DeclarationDefaults } from "./declaration.ts";
import { declaresPolicy, type ResolvedPolicies, resolvePolicies } from "./policies.ts";
import { type ResolvedTimeouts, resolveTimeouts } from "./timeouts.ts";

interface Known {
  readonly policies: Map<string | undefined, ResolvedPolicies>;
  readonly timeouts: Map<string, Shared<ResolvedTimeouts>>;
  readonly results: Map<string, Shared<ParsedResultRules>>;
}

/** What follows from a block that is absent, and from those that declarations share. */
interface Shared<R> {
  readonly absent: R;
  readonly declared: SharedResults<R>;
}

/**
 * What is in force for declarations that say nothing themselves, or the same as others: most of thousands do, so it is
 * worked out once and shared.
 */
export class Standards {
  /** As long as the same defaults are in force. */
  readonly #known = new WeakMap<DeclarationDefaults, Known>();

  /** As {@link resolvePolicies}. */
  policies(keys: JsonObject, defaults: DeclarationDefaults): ResolvedPolicies {
    const group = ownValue(keys, "group");
    const isKnown = group === undefined || (typeof group === "string" && defaults.groups?.has(group) === true);
    if (!isKnown || declaresPolicy(keys)) return resolvePolicies(keys, defaults);
    const { policies } = this.#of(defaults);
    const found = policies.get(group) ?? resolvePolicies(keys, defaults);
    policies.set(group, found);
    return found;
  }

  /** As {@link resolveTimeouts}. */
  timeouts(
    declared: JsonObject | undefined,
    tool: Pick<DeclaredTool, "delivery" | "kind">,
    defaults: DeclarationDefaults,
  ): ResolvedTimeouts {
    return sharedOf(this.#of(defaults).timeouts, `${tool.kind} ${tool.delivery}`, declared, (block = {}) => {
      return resolveTimeouts(block, tool, defaults);
    });
  }

  /** As {@link parseResultRules}. */
  results(
    declared: JsonObject | undefined,
    tool: Pick<DeclaredTool, "delivery" | "kind">,
    defaults: DeclarationDefaults,
  ): ParsedResultRules {
    return sharedOf(this.#of(defaults).results, `${tool.kind} ${tool.delivery}`, declared, (block) => {
      return resolveResult(block, tool, defaults);
    });
  }

  #of(defaults: DeclarationDefaults): Known {
    const known = this.#known.get(defaults) ?? { policies: new Map(), timeouts: new Map(), results: new Map() };
    this.#known.set(defaults, known);
    return known;
  }
}

/** What is in force of a `result:` block; undefined: there is none. */
export function resolveResult(
  block: JsonObject | undefined,
  { delivery, kind }: Pick<DeclaredTool, "delivery" | "kind">,
  defaults: DeclarationDefaults,
): ParsedResultRules {
  return parseResultRules(block, { delivery, kind, defaults });
}

/** What follows from a block, or from its absence, by what else it depends on. */
function sharedOf<R>(
  known: Map<string, Shared<R>>,
  key: string,
  declared: JsonObject | undefined,
  work: (block: JsonObject | undefined) => R,
): R {
  const found = known.get(key) ?? { absent: work(undefined), declared: new SharedResults<R>() };
  known.set(key, found);
  return declared === undefined ? found.absent : found.declared.of(declared, () => work(declared));
}
