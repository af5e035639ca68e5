import type { ToolFailure } from "../../core/call.ts";
import type { JsonValue } from "../../core/json.ts";
import type { ResultRules } from "../../core/shaper.ts";
import type { Judge } from "../success.ts";
import { SelectFault } from "./budget.ts";
import { evaluateSelect } from "./evaluate-select.ts";
import { parseSelect, type SelectNode } from "./parse-select.ts";

/**
 * The `select` rule of a tool: a successful result becomes what the expression makes of it. FIELD_MISSING where a function
 * gets what it does not take, RESULT_TOO_LONG where the expression takes more steps than it may.
 */
export function createSelect(tool: string, { select }: ResultRules): Judge {
  const parsed = select === undefined ? undefined : parseSelect(select);
  if (parsed?.ok !== true) return (result) => result;
  const { node } = parsed;
  return (result) => {
    if (result.failure !== undefined || result.needsInput !== undefined) return result;
    const { value, content, ...rest } = result;
    // An answer without any content has nothing to pick from and stays a success.
    if (value === undefined && content.length === 0) return result;
    const picked = value === undefined ? NO_JSON : pick(node, value);
    if (picked.ok) return { ...rest, content: content.filter((part) => part.type !== "text"), value: picked.value };
    const failure = failureOf(tool, picked.fault, result.upstreamCode);
    return { ...rest, content: [], failure };
  };
}

const NO_JSON: Picked = { ok: false, fault: new SelectFault("mismatch", "it is no JSON") };

type Picked = { readonly ok: true; readonly value: JsonValue } | { readonly ok: false; readonly fault: SelectFault };

function pick(node: SelectNode, value: JsonValue): Picked {
  try {
    return { ok: true, value: evaluateSelect(node, value) };
  } catch (error) {
    if (error instanceof SelectFault) return { ok: false, fault: error };
    throw error;
  }
}

function failureOf(tool: string, { kind, message }: SelectFault, upstreamCode: number | undefined): ToolFailure {
  const isTooMuch = kind === "too-much";
  return {
    reason: isTooMuch ? "RESULT_TOO_LONG" : "FIELD_MISSING",
    message: isTooMuch
      ? `${tool}: \`select\` takes ${message} on this answer; ask for less, or write \`data_field\` and \`fields\` instead`
      : `${tool}: the answer does not fit \`select\`: ${message}`,
    upstreamCode,
    retryable: false,
    upstreamFault: false,
  };
}
