import { isJsonArray, isJsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { Budget } from "./budget.ts";
import { type Argument, Arguments, FUNCTIONS } from "./functions.ts";
import type { SelectNode } from "./parse-select.ts";
import { isEqual, isNumber, isTruthy, walk } from "./values.ts";

/**
 * What an expression makes of a value: null where it finds nothing. It takes a bounded number of steps, and what it gives
 * is bounded by it too: every value in it is a step, as often as it stands there.
 *
 * @throws SelectFault
 */
export function evaluateSelect(node: SelectNode, value: JsonValue): JsonValue {
  const budget = new Budget();
  const result = evaluate(node, value, budget);
  walk(result, budget);
  return result;
}

function evaluate(node: SelectNode, value: JsonValue, budget: Budget): JsonValue {
  budget.spend(1);
  switch (node.type) {
    case "Identity":
    case "Current":
      return value;
    case "Literal":
      return node.value;
    case "Subexpression":
    case "IndexExpression":
    case "Pipe":
      return evaluate(node.right, evaluate(node.left, value, budget), budget);
    case "OrExpression":
    case "AndExpression":
      return either(node, value, budget);
    case "Comparator":
      return compare(node, value, budget);
    default:
      return isJsonArray(value) ? evaluateItems(node, value, budget) : evaluateMany(node, value, budget);
  }
}

function fieldOf(value: JsonValue, name: string): JsonValue {
  return isJsonObject(value) ? (ownValue(value, name) ?? null) : null;
}

function objectOf({ children }: NodeOf<"MultiSelectHash">, value: JsonValue, budget: Budget): JsonValue {
  return Object.fromEntries(children.map(({ name, value: child }) => [name, evaluate(child, value, budget)]));
}

/** What is picked from a list. */
function evaluateItems(node: SelectNode, list: readonly JsonValue[], budget: Budget): JsonValue {
  if (node.type === "Index") return list.at(node.value) ?? null;
  return node.type === "Slice" ? slice(list, node, budget) : evaluateMany(node, list, budget);
}

type NodeOf<T extends SelectNode["type"]> = Extract<SelectNode, { readonly type: T }>;

/** A node with two sides, and a condition where it filters. */
interface Sides {
  readonly type: SelectNode["type"];
  readonly left: SelectNode;
  readonly right: SelectNode;
  readonly condition?: SelectNode;
}

/** Expressions that make several values, or of several. */
function evaluateMany(node: SelectNode, value: JsonValue, budget: Budget): JsonValue {
  switch (node.type) {
    case "Field":
      return fieldOf(value, node.name);
    case "Projection":
    case "FilterProjection":
    case "ValueProjection":
      return project(node, value, budget);
    case "NotExpression":
      return !isTruthy(evaluate(node.child, value, budget));
    case "Flatten":
      return flatten(evaluate(node.child, value, budget), budget);
    case "MultiSelectList":
      return value === null ? null : node.children.map((child) => evaluate(child, value, budget));
    case "MultiSelectHash":
      return value === null ? null : objectOf(node, value, budget);
    case "Function":
      return callFunction(node, value, budget);
    default:
      // An index or a slice of what is no list; all else was refused when it was parsed.
      return null;
  }
}

function either(node: Sides, value: JsonValue, budget: Budget): JsonValue {
  const left = evaluate(node.left, value, budget);
  return isTruthy(left) === (node.type === "OrExpression") ? left : evaluate(node.right, value, budget);
}

function compare(node: NodeOf<"Comparator">, value: JsonValue, budget: Budget): JsonValue {
  const left = evaluate(node.left, value, budget);
  const right = evaluate(node.right, value, budget);
  if (node.name === "EQ") return isEqual(left, right, budget);
  if (node.name === "NE") return !isEqual(left, right, budget);
  if (!isNumber(left) || !isNumber(right)) return null;
  switch (node.name) {
    case "GT":
      return left > right;
    case "GTE":
      return left >= right;
    case "LT":
      return left < right;
    case "LTE":
      return left <= right;
  }
}

/** Of every item what the right side makes of it; what is null is left out. */
function project(node: Sides, value: JsonValue, budget: Budget): JsonValue {
  const base = evaluate(node.left, value, budget);
  const items = node.type === "ValueProjection" ? valuesOf(base) : isJsonArray(base) ? base : undefined;
  if (items === undefined) return null;
  const found: JsonValue[] = [];
  for (const item of items) {
    budget.spend(1);
    if (node.condition !== undefined && !isTruthy(evaluate(node.condition, item, budget))) continue;
    const made = evaluate(node.right, item, budget);
    if (made !== null) found.push(made);
  }
  return found;
}

function valuesOf(value: JsonValue): readonly JsonValue[] | undefined {
  return isJsonObject(value) ? Object.values(value) : undefined;
}

function flatten(value: JsonValue, budget: Budget): JsonValue {
  if (!isJsonArray(value)) return null;
  const flat: JsonValue[] = [];
  for (const item of value) {
    budget.spend(isJsonArray(item) ? 1 + item.length : 1);
    if (!isJsonArray(item)) flat.push(item);
    else for (const inner of item) flat.push(inner);
  }
  return flat;
}

/** As in Python. Source: https://jmespath.org/specification.html#slices. */
function slice(list: readonly JsonValue[], node: NodeOf<"Slice">, budget: Budget): JsonValue {
  const step = node.step ?? 1;
  if (step === 0) return null;
  const { length } = list;
  const within = (bound: number): number =>
    step > 0 ? Math.min(length, Math.max(0, bound)) : Math.min(length - 1, Math.max(-1, bound));
  const place = (bound: number | null, missing: number): number =>
    bound === null ? missing : within(bound < 0 ? bound + length : bound);
  const stop = place(node.stop, step > 0 ? length : -1);
  const found: JsonValue[] = [];
  for (let i = place(node.start, step > 0 ? 0 : length - 1); step > 0 ? i < stop : i > stop; i += step) {
    budget.spend(1);
    found.push(list[i] ?? null);
  }
  return found;
}

function callFunction({ name, children }: NodeOf<"Function">, value: JsonValue, budget: Budget): JsonValue {
  const args = children.map((child): Argument => {
    if (child.type !== "ExpressionReference") return evaluate(child, value, budget);
    return { apply: (item) => evaluate(child.child, item, budget) };
  });
  return FUNCTIONS.get(name)?.call(new Arguments(name, args), budget) ?? null;
}
