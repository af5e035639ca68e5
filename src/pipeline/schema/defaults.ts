import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import type { ArgumentCopy } from "./argument-copy.ts";
import { DEFS } from "./keywords.ts";

/** Fills in declared defaults. */
export interface Defaults {
  /** Sets what is absent. `nulls` false: a default `null` is left out, after the schema refused one. */
  complete(copy: ArgumentCopy, nulls: boolean): void;
}

/**
 * Prepares the defaults of a schema as the reader makes it: those in `properties`, at every depth that `properties`,
 * `items` and `$ref` lead to. A default inside `anyOf` and the like belongs to one alternative only and is left alone.
 */
export function createDefaults(root: JsonObject): Defaults {
  const plans = new Map<JsonObject, Plan>();
  const plan = planOf(root, root, plans);
  prune([...plans.values()]);
  return {
    complete(copy, nulls) {
      if (plan !== undefined) apply(plan, copy.root, { copy, nulls });
    },
  };
}

/** The defaults of one schema. */
interface Plan {
  readonly defaults: (readonly [name: string, value: JsonValue])[];
  below: (readonly [name: string, plan: Plan])[];
  items: Plan | undefined;
}

function planOf(value: JsonValue | undefined, root: JsonObject, plans: Map<JsonObject, Plan>): Plan | undefined {
  const schema = followRefs(value, root);
  if (schema === undefined) return undefined;
  const known = plans.get(schema);
  if (known !== undefined) return known;
  const plan: Plan = { defaults: [], below: [], items: undefined };
  plans.set(schema, plan);
  const properties = ownValue(schema, "properties");
  for (const [name, property] of isJsonObject(properties) ? Object.entries(properties) : []) {
    const preset = isJsonObject(property) ? ownValue(property, "default") : undefined;
    if (preset !== undefined) plan.defaults.push([name, preset]);
    const below = planOf(property, root, plans);
    if (below !== undefined) plan.below.push([name, below]);
  }
  plan.items = planOf(ownValue(schema, "items"), root, plans);
  return plan;
}

/** A chain of references ends, since the reader refuses one that leads back to itself. */
function followRefs(value: JsonValue | undefined, root: JsonObject): JsonObject | undefined {
  if (value === undefined || !isJsonObject(value)) return undefined;
  const ref = ownValue(value, "$ref");
  if (typeof ref !== "string") return value;
  const defs = ownValue(root, "$defs");
  return followRefs(
    defs !== undefined && isJsonObject(defs) ? ownValue(defs, ref.slice(DEFS.length)) : undefined,
    root,
  );
}

/** Takes out the ways that lead to no default, so that a long list without any is not walked through. */
function prune(plans: readonly Plan[]): void {
  const useful = new Set(plans.filter((plan) => plan.defaults.length > 0));
  const leadsOn = (plan: Plan): boolean =>
    plan.below.some(([, below]) => useful.has(below)) || (plan.items !== undefined && useful.has(plan.items));
  for (let size = -1; size !== useful.size; ) {
    size = useful.size;
    for (const plan of plans) if (leadsOn(plan)) useful.add(plan);
  }
  for (const plan of plans) {
    plan.below = plan.below.filter(([, below]) => useful.has(below));
    if (plan.items !== undefined && !useful.has(plan.items)) plan.items = undefined;
  }
}

function apply(plan: Plan, value: JsonValue, into: { readonly copy: ArgumentCopy; readonly nulls: boolean }): void {
  if (isJsonArray(value)) {
    if (plan.items !== undefined) for (const item of value) apply(plan.items, item, into);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [name, below] of plan.below) {
    const item = ownValue(value, name);
    if (item !== undefined) apply(below, item, into);
  }
  for (const [name, preset] of plan.defaults) {
    const wanted = !Object.hasOwn(value, name) && (into.nulls || preset !== null);
    if (wanted) into.copy.set(value, name, preset);
  }
}
