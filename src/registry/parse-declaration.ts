import { ownObject } from "../config/own-values.ts";
import { orderProblems, parseDocument } from "../config/parse-document.ts";
import type { SourceDocument, SourceProblem } from "../config/source-document.ts";
import { pathText } from "../config/wording.ts";
import type { Adapter, AdapterSettings, ConfigIssue, PrivateReach } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { jsonPointer, ownValue, pointerSteps } from "../core/json.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { ResultRules } from "../core/shaper.ts";
import type { EffectClass } from "../core/step.ts";
import { oneLine } from "../core/text.ts";
import type { DeclaredTool, ToolKind } from "../core/tool.ts";
import { type ParsedResultRules, parseResultRules } from "../shaping/result-rules.ts";
import { type ResolvedAccess, resolveAccess } from "./access.ts";
import type { Declaration, DeclarationDefaults, DeclarationOutcome } from "./declaration.ts";
import type { DeclarationGrammar } from "./declaration-grammar.ts";
import { declaredKind } from "./declared-kind.ts";
import { readTool } from "./declared-tool.ts";
import { contractDigestOf, declarationDigestOf } from "./digests.ts";
import { type ExplainParts, explainDeclaration } from "./explain-declaration.ts";
import { lintDeclaration } from "./lint.ts";
import { hedgeIssues, type ResolvedPolicies, resolvePolicies } from "./policies.ts";
import { type ResolvedTimeouts, resolveTimeouts } from "./timeouts.ts";

/** Most keys of a declaration; few of them have a meaning. */
const MAX_KEYS = 200;

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

/** Reads one declaration. Never throws for what the text holds: all its problems come back, in order of position. */
export function parseDeclaration(text: string, options: ParseDeclarationOptions): DeclarationOutcome {
  const { source } = options;
  const parsed = parseDocument(text, options.format);
  if (!parsed.ok) return { ok: false, name: undefined, problems: toProblems(parsed.problems, source, false) };
  const { document } = parsed;
  const outcome = tooManyKeys(document.value) ?? readDeclaration({ text, document }, options);
  if (outcome.ok) return outcome;
  const name = ownValue(document.value, "name");
  const problems = toProblems(positioned(outcome.issues, document), source, false);
  return { ok: false, name: typeof name === "string" ? name : undefined, problems };
}

interface ReadText {
  readonly text: string;
  readonly document: SourceDocument;
}

type ReadOutcome =
  | { readonly ok: true; readonly declaration: Declaration }
  | { readonly ok: false; readonly issues: readonly ConfigIssue[] };

function tooManyKeys(value: JsonObject): ReadOutcome | undefined {
  const surplus = Object.keys(value)[MAX_KEYS];
  if (surplus === undefined) return undefined;
  return {
    ok: false,
    issues: [{ pointer: jsonPointer([surplus]), message: `more than ${MAX_KEYS} keys in one declaration` }],
  };
}

function readDeclaration(read: ReadText, options: ParseDeclarationOptions): ReadOutcome {
  const { document } = read;
  const found = declaredKind(document.value, options.grammar);
  if (found.ok) return readKind(read, found.adapter, options);
  if (found.kind === undefined) return found;
  return { ok: false, issues: [...found.issues, ...readCommon(document, found.kind, options).issues] };
}

/** What all kinds have in common. */
interface CommonParts {
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
function readCommon(document: SourceDocument, kind: ToolKind, options: ParseDeclarationOptions): CommonParts {
  const { grammar, defaults } = options;
  const { value, issues } = grammar.check(kind)(document);
  const keys = soundKeys(value, issues);
  const { tool, inner, ...found } = readTool({ keys, document, kind, schemaProblem: grammar.schemaProblem });
  const result = parseResultRules(ownObject(keys, "result"), {
    delivery: tool.delivery,
    defaultMaxLength: defaults.maxLength,
  });
  const timeouts = resolveTimeouts(ownObject(keys, "timeout") ?? {}, tool, defaults);
  const policies = resolvePolicies(keys, defaults);
  const parts = [{ issues }, found, { issues: resultIssues(result, tool) }, timeouts, policies];
  return {
    value,
    keys,
    tool,
    inner,
    result,
    timeouts,
    policies,
    access: resolveAccess(keys, defaults),
    issues: parts.flatMap((part) => part.issues),
    notes: [...found.notes, ...timeouts.notes, ...policies.notes],
  };
}

function readKind(read: ReadText, adapter: Adapter, options: ParseDeclarationOptions): ReadOutcome {
  const { document } = read;
  const { grammar, defaults, source } = options;
  const common = readCommon(document, adapter.kind, options);
  const { value, keys, tool, inner, result, timeouts, policies, access, issues } = common;
  const own = pick(value, propertyNames(adapter.configSchema));
  const blocked = issues.some((issue) => concernsAdapter(issue, adapter));
  const settings = settingsOf(result.rules, timeouts, options);
  const configured = blocked ? undefined : adapter.configure(own, inner, settings);
  if (configured === undefined || !configured.ok)
    return { ok: false, issues: [...issues, ...named(configured?.issues ?? [])] };
  const stepConfigs = stepConfigsOf(keys, grammar);
  const effects = effectClass(tool, configured.readOnly, stepConfigs);
  const allIssues = [...issues, ...hedgeIssues(policies, effects, tool)];
  if (allIssues.length > 0) return { ok: false, issues: allIssues };
  const { config, upstream, warnings } = configured;
  const { rules } = result;
  const policy = { ...timeouts.policy, ...policies.policy, ...access.policy, effectClass: effects, upstream };
  const contractDigest = contractDigestOf(tool);
  const declared = { source, tool, adapter, config, rules, policy, stepConfigs, contractDigest };
  const notes = [...common.notes, ...named(warnings), ...lintDeclaration(tool, rules, document)];
  const shown = { tool, timeouts, policies, access, stepConfigs, result: result.explained };
  const explain = explainLater(read.text, { ...shown, adapter, config }, options);
  return {
    ok: true,
    declaration: {
      ...declared,
      namePlace: document.position("/name"),
      digest: declarationDigestOf(declared, { own, defaults, policies }),
      notes: toProblems(positioned(notes, document), source, true),
      get explained() {
        return explain();
      },
    },
  };
}

/** Few tools are ever explained: the text is kept for it, and read again for the places, which take far more room. */
function explainLater(
  text: string,
  { adapter, config, ...parts }: Omit<ExplainParts, "adapter"> & Pick<Declaration, "adapter" | "config">,
  { format, source, defaults, origins }: ParseDeclarationOptions,
): () => Declaration["explained"] {
  return () => {
    const read = parseDocument(text, format);
    if (!read.ok) return [];
    const { document } = read;
    return explainDeclaration({ ...parts, adapter: adapter.explain(config) }, { document, source, defaults, origins });
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
    sound.push(["params", params.map((param: JsonValue, i) => (wrong.has(String(i)) ? null : param))]);
  }
  return Object.fromEntries(sound);
}

function topKey(issue: ConfigIssue): string | undefined {
  return pointerSteps(issue.pointer)[0];
}

/** Whether an adapter could not make sense of its keys: they, or the parameters they refer to, have an issue. */
function concernsAdapter(issue: ConfigIssue, adapter: Adapter): boolean {
  const key = topKey(issue);
  return key === undefined || ["params", "input_schema", ...propertyNames(adapter.configSchema)].includes(key);
}

/** Issues of the result rules, and fields of an answer that never stands as a whole. */
function resultIssues({ rules, issues }: ParsedResultRules, { delivery }: DeclaredTool): ConfigIssue[] {
  const fields = [
    ["success_field", rules.successField],
    ["data_field", rules.dataField],
  ] as const;
  const early = fields.flatMap(([key, field]): ConfigIssue[] => {
    if (delivery !== "incremental" || field === undefined) return [];
    const message = `\`result.${key}\` needs the whole answer, which \`delivery: incremental\` passes on in pieces: remove one of them`;
    return [{ pointer: `/result/${key}`, message }];
  });
  return [...issues.map(({ pointer, message }) => ({ pointer: `/result${pointer}`, message })), ...early];
}

/** An adapter's issues, with the key they are about where the text does not begin with one. */
function named(issues: readonly ConfigIssue[]): ConfigIssue[] {
  return issues.map(({ pointer, message }) => {
    return {
      pointer,
      message: message.startsWith("`") || pointer === "" ? message : `${pathText(pointer)}: ${message}`,
    };
  });
}

function settingsOf(
  rules: ResultRules,
  { policy }: ResolvedTimeouts,
  { defaults, reach = "all" }: ParseDeclarationOptions,
): AdapterSettings {
  const looksInside = rules.successField !== undefined || rules.dataField !== undefined;
  return {
    timeouts: policy.timeouts,
    maxResponseBytes: defaults.maxResponseBytes,
    format: rules.format === "auto" && looksInside ? "json" : rules.format,
    pool: defaults.pool ?? {},
    reach,
  };
}

function stepConfigsOf(keys: JsonObject, { steps }: DeclarationGrammar): ReadonlyMap<string, JsonValue> {
  const configs = new Map<string, JsonValue>();
  for (const { name, configSchema } of steps) {
    const value = configSchema === undefined ? undefined : ownValue(keys, name);
    if (value !== undefined) configs.set(name, value);
  }
  return configs;
}

function propertyNames(schema: JsonObject): readonly string[] {
  return Object.keys(ownObject(schema, "properties") ?? {});
}

function pick(keys: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(keys).filter(([name]) => names.includes(name)));
}

function effectClass({ hints }: DeclaredTool, readOnly: boolean, stepConfigs: Declaration["stepConfigs"]): EffectClass {
  if (hints.readOnly ?? readOnly) return "read";
  if (stepConfigs.has("idempotency_field")) return "keyed";
  return hints.idempotent === true ? "idempotent" : "write";
}

function positioned(issues: readonly ConfigIssue[], document: SourceDocument): SourceProblem[] {
  return issues.map(({ pointer, message }) => ({ ...document.position(pointer), message }));
}

function toProblems(problems: readonly SourceProblem[], source: string, note: boolean): DeclarationProblem[] {
  return orderProblems(problems).map(({ line, column, message }) => {
    return { source, line, column, message: oneLine(message), lastGoodServing: false, note };
  });
}
