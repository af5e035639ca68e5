import { ownObject } from "../config/own-values.ts";
import type { SourceDocument } from "../config/source-document.ts";
import type { ConfigIssue, PrivateReach } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { ownValue, pointerSteps } from "../core/json.ts";
import type { DeclaredTool, ToolKind } from "../core/tool.ts";
import type { ParsedResultRules } from "../shaping/result-rules.ts";
import { type ResolvedAccess, resolveAccess } from "./access.ts";
import type { DeclarationDefaults } from "./declaration.ts";
import type { DeclarationGrammar } from "./declaration-grammar.ts";
import { readTool } from "./declared-tool.ts";
import type { ResolvedPolicies } from "./policies.ts";
import type { ResolvedTimeouts } from "./timeouts.ts";

/** What differs from one declaration to the next, and the gateway's defaults. */
export interface ParseDeclarationOptions {
  readonly format: "yaml" | "json";
  /** `file:order_status.yaml` or `api:NAME`. */
  readonly source: string;
  readonly grammar: DeclarationGrammar;
  readonly defaults: DeclarationDefaults;
  /** Which addresses that are not public it may lead to. Default: all. */
  readonly reach?: PrivateReach;
  /** Where the values of gateway.yaml came from, by dotted key: `GatewayConfig.origins`. */
  readonly origins: ReadonlyMap<string, string>;
}

/** What declarations of all kinds have in common. */
export interface CommonParts {
  /** As it was declared. */
  readonly value: JsonObject;
  /** Without what has issues itself. */
  readonly keys: JsonObject;
  readonly tool: DeclaredTool;
  /** The tool as its adapter sees it. */
  readonly inner: DeclaredTool;
  readonly result: ParsedResultRules;
  readonly timeouts: ResolvedTimeouts;
  readonly policies: ResolvedPolicies;
  readonly access: ResolvedAccess;
  /** Those of the keys and schemas come first. */
  readonly issues: readonly ConfigIssue[];
  readonly notes: readonly ConfigIssue[];
}

/** Reads every part, also where another part has issues; what has issues itself counts as absent. */
export function readCommon(document: SourceDocument, kind: ToolKind, options: ParseDeclarationOptions): CommonParts {
  const { grammar, defaults } = options;
  const { value, issues } = grammar.check(kind)(document);
  const keys = soundKeys(value, issues);
  const { tool, inner, ...found } = readTool({ keys, document, kind, grammar });
  const result = grammar.standards.results(ownObject(keys, "result"), tool, defaults);
  const timeouts = grammar.standards.timeouts(ownObject(keys, "timeout"), tool, defaults);
  const policies = grammar.standards.policies(keys, defaults);
  const isServer = grammar.adapters.get(kind)?.offers === true;
  const access = resolveAccess(keys, defaults, isServer ? {} : { tool: tool.name });
  const parts = [{ issues }, found, { issues: resultIssues(result, tool) }, timeouts, policies, access];
  return {
    value,
    keys,
    tool,
    inner,
    result,
    timeouts,
    policies,
    access,
    issues: parts.flatMap((part) => part.issues),
    notes: [...found.notes, ...timeouts.notes, ...policies.notes, ...access.notes],
  };
}

/** The keys that no issue concerns; of `params`, the entries, so that one wrong parameter does not hide another. */
function soundKeys(keys: JsonObject, issues: readonly ConfigIssue[]): JsonObject {
  if (issues.length === 0) return keys;
  const unsound = new Set(issues.map(topKey));
  const sound = Object.entries(keys).filter(([key]) => !unsound.has(key));
  const params = ownValue(keys, "params");
  if (Array.isArray(params) && unsound.has("params")) {
    const wrong = new Set(
      issues.filter((issue) => topKey(issue) === "params").map(({ pointer }) => pointerSteps(pointer)[1]),
    );
    // A list that is wrong as a whole, such as one that is too long, is not looked into.
    if (!wrong.has(undefined))
      sound.push(["params", params.map((param: JsonValue, i) => (wrong.has(String(i)) ? null : param))]);
  }
  return Object.fromEntries(sound);
}

/** The key of the declaration that an issue is about. */
export function topKey(issue: ConfigIssue): string | undefined {
  return pointerSteps(issue.pointer)[0];
}

/** Issues of the result rules, and fields of an answer that never stands as a whole. */
export function resultIssues(
  { rules, issues }: ParsedResultRules,
  { delivery }: Pick<DeclaredTool, "delivery">,
): ConfigIssue[] {
  const fields = [
    ["success_field", rules.successField],
    ["data_field", rules.dataField],
    ["error_field", rules.errorField],
    ["fields", rules.fields],
    ["template", rules.template],
    ["max_tokens", rules.maxTokens],
    ["handle", rules.handle],
  ] as const;
  const early = fields.flatMap(([key, field]): ConfigIssue[] => {
    if (delivery !== "incremental" || field === undefined) return [];
    const message = `\`result.${key}\` needs the whole answer, which \`delivery: incremental\` passes on in pieces: remove one of them`;
    return [{ pointer: `/result/${key}`, message }];
  });
  return [...issues.map(({ pointer, message }) => ({ pointer: `/result${pointer}`, message })), ...early];
}
