import type { JsonObject } from "../core/json.ts";
import { ownValue } from "../core/json.ts";
import type { DeclaredTool } from "../core/tool.ts";
import type { DeclarationDefaults } from "./declaration.ts";
import { declaresPolicy, type ResolvedPolicies, resolvePolicies } from "./policies.ts";
import { type ResolvedTimeouts, resolveTimeouts } from "./timeouts.ts";

interface Known {
  readonly policies: Map<string | undefined, ResolvedPolicies>;
  readonly timeouts: Map<string, ResolvedTimeouts>;
}

/**
 * What is in force for declarations that say nothing themselves: most of thousands do not, so it is worked out once and
 * shared.
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
    if (declared !== undefined) return resolveTimeouts(declared, tool, defaults);
    const { timeouts } = this.#of(defaults);
    const key = `${tool.kind} ${tool.delivery}`;
    const found = timeouts.get(key) ?? resolveTimeouts({}, tool, defaults);
    timeouts.set(key, found);
    return found;
  }

  #of(defaults: DeclarationDefaults): Known {
    const known = this.#known.get(defaults) ?? { policies: new Map(), timeouts: new Map() };
    this.#known.set(defaults, known);
    return known;
  }
}
