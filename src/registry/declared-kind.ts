import { ownObject } from "../config/own-values.ts";
import { notSupportedYet } from "../config/schema-errors.ts";
import { keyText } from "../config/wording.ts";
import type { Adapter, ConfigIssue } from "../core/adapter.ts";
import type { JsonObject } from "../core/json.ts";
import { jsonPointer, ownValue } from "../core/json.ts";
import type { ToolKind } from "../core/tool.ts";
import type { DeclarationGrammar } from "./declaration-grammar.ts";

/** Every kind there will be. */
const TOOL_KINDS: readonly ToolKind[] = ["http", "script", "mcp", "grpc", "runtime", "module", "loop"];

/** Outcome of looking for the kind of a declaration. */
export type DeclaredKind =
  | { readonly ok: true; readonly adapter: Adapter }
  /** A known kind that is not in force. */
  | { readonly ok: false; readonly kind: ToolKind; readonly issues: readonly ConfigIssue[] }
  /** A document that declares no tool. */
  | { readonly ok: false; readonly kind?: undefined; readonly issues: readonly ConfigIssue[] };

/**
 * The adapter a declaration is for. One whose `type` is missing or misspelt is taken for the kind that has most of its
 * keys, so that all its problems are named at once. A document of another sort is refused with all of its keys that
 * are not in force.
 */
export function declaredKind(document: JsonObject, grammar: DeclarationGrammar): DeclaredKind {
  const type = ownValue(document, "type");
  const kind = TOOL_KINDS.find((each) => each === type);
  const adapter = kind === undefined ? likelyAdapter(document, grammar) : grammar.adapters.get(kind);
  const mend = `a file declares one tool of type ${[...grammar.adapters.keys()].join(" or ")}`;
  if (kind !== undefined && adapter === undefined) {
    const message = notSupportedYet(`\`type: ${kind}\``, mend);
    return { ok: false, kind, issues: [{ pointer: "/type", message }] };
  }
  const later = laterDocument(document);
  if (adapter !== undefined && later === undefined) return { ok: true, adapter };
  const issues = grammar.notYet.filter((key) => Object.hasOwn(document, key)).map(notYetIssue);
  return {
    ok: false,
    issues: [{ pointer: issues[0]?.pointer ?? "", message: notSupportedYet(later ?? "", mend) }, ...issues],
  };
}

function likelyAdapter(document: JsonObject, { adapters }: DeclarationGrammar): Adapter | undefined {
  const keys = Object.keys(document);
  const own = (adapter: Adapter): number => {
    const properties = ownObject(adapter.configSchema, "properties") ?? {};
    return keys.filter((key) => Object.hasOwn(properties, key)).length;
  };
  // The first in force where several have as many.
  return [...adapters.values()].toSorted((a, b) => own(b) - own(a))[0];
}

/** Documents that declare no tool of their own. */
function laterDocument(document: JsonObject): string | undefined {
  if (ownValue(document, "type") !== undefined) return undefined;
  if (Object.hasOwn(document, "prompt")) return "a skill document (`tools` and `prompt` without `type`)";
  const isToolset = Object.hasOwn(document, "tools") || Object.hasOwn(document, "includes");
  return isToolset ? "a toolset document (`tools` without `type`)" : undefined;
}

function notYetIssue(key: string): ConfigIssue {
  return { pointer: jsonPointer([key]), message: notSupportedYet(keyText(key)) };
}
