import { ownObject } from "../config/own-values.ts";
import { orderProblems, parseDocument } from "../config/parse-document.ts";
import type { SourceDocument, SourceProblem } from "../config/source-document.ts";
import { pathText } from "../config/wording.ts";
import type { Adapter, AdapterSettings, ConfigIssue, Configured } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { jsonPointer, ownValue } from "../core/json.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { ResultRules } from "../core/shaper.ts";
import type { EffectClass } from "../core/step.ts";
import { oneLine } from "../core/text.ts";
import type { DeclaredTool } from "../core/tool.ts";
import { looksInside } from "../shaping/result-rules.ts";
import type { Declaration, DeclarationOutcome } from "./declaration.ts";
import type { DeclarationGrammar } from "./declaration-grammar.ts";
import { type CommonParts, type ParseDeclarationOptions, readCommon, topKey } from "./declaration-parts.ts";
import { declaredKind } from "./declared-kind.ts";
import { type ReadServer, readServer } from "./declared-server.ts";
import { upstreamDigestOf } from "./digests.ts";
import { lintDeclaration } from "./lint.ts";
import { LoadedDeclaration } from "./loaded-declaration.ts";
import { hedgeIssues } from "./policies.ts";
import type { ResolvedTimeouts } from "./timeouts.ts";

/** Most keys of a declaration; few of them have a meaning. */
const MAX_KEYS = 200;

/** Reads one declaration. Never throws for what the text holds: all its problems come back, in order of position. */
export function parseDeclaration(text: string, options: ParseDeclarationOptions): DeclarationOutcome {
  const { source } = options;
  const { documents, parts } = options.grammar;
  const parsed = documents.take(text, options.format) ?? parseDocument(text, options.format, { parts });
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

function readKind(read: ReadText, adapter: Adapter, options: ParseDeclarationOptions): ReadOutcome {
  const { document } = read;
  const { grammar, source } = options;
  const common = readCommon(document, adapter.kind, options);
  const { value, keys, tool, inner, result, timeouts, policies, access, issues } = common;
  const own = pick(value, adapter);
  const blocked = issues.some((issue) => concernsAdapter(issue, adapter));
  const settings = settingsOf(result.rules, timeouts, options);
  const configured = blocked ? undefined : adapter.configure(own, inner, settings);
  if (configured === undefined || !configured.ok)
    return { ok: false, issues: [...issues, ...named(configured?.issues ?? [])] };
  const stepConfigs = stepConfigsOf(keys, grammar);
  const effects = effectClass(tool, configured.readOnly, stepConfigs);
  const { config, upstream, warnings, runsProgram } = configured;
  const found =
    adapter.offers === true
      ? serverOf(read, { ...common, own, settings, upstream }, adapter, options)
      : { own, ...toolFindings(common, effects, document) };
  const allIssues = [...issues, ...found.issues];
  if (allIssues.length > 0) return { ok: false, issues: allIssues };
  const { rules } = result;
  const notes = [...common.notes, ...named(warnings), ...found.notes];
  const parts = {
    namePlace: document.position("/name"),
    tool,
    adapter,
    config,
    ...access.placed,
    ...(runsProgram === undefined ? {} : { runsProgram }),
    ...usedBy(configured),
    rules,
    policy: { ...timeouts.policy, ...policies.policy, ...access.policy, effectClass: effects, upstream },
    stepConfigs,
    notes: toProblems(positioned(notes, document), source, true),
    server: found.server,
  };
  const { facts } = policies;
  const from = { text: read.text, own: found.own, facts, options };
  return { ok: true, declaration: new LoadedDeclaration(parts, from) };
}

/** What it uses from outside, without the lists that are empty. */
function usedBy({
  secretRefs = [],
  inheritedEnv = [],
  alsoReaches = [],
}: Configured<unknown> & { readonly ok: true }): Pick<Declaration, "secretRefs" | "inheritedEnv" | "alsoReaches"> {
  return {
    ...(secretRefs.length === 0 ? {} : { secretRefs }),
    ...(inheritedEnv.length === 0 ? {} : { inheritedEnv }),
    ...(alsoReaches.length === 0 ? {} : { alsoReaches }),
  };
}

/** What there is to say of a declaration that is a tool itself, where a server's has {@link ReadServer}. */
function toolFindings(
  { tool, policies, result }: CommonParts,
  effects: EffectClass,
  document: SourceDocument,
): Pick<ReadServer, "issues" | "notes"> & { readonly server?: undefined } {
  return {
    issues: hedgeIssues(policies, effects, tool),
    notes: lintDeclaration(tool, result.rules, document),
  };
}

/** What a declaration that names a server says of the tools behind it. */
function serverOf(
  { text, document }: ReadText,
  common: Pick<CommonParts, "keys" | "tool" | "result"> & {
    readonly own: JsonObject;
    readonly settings: AdapterSettings;
    readonly upstream: string;
  },
  adapter: Adapter,
  options: ParseDeclarationOptions,
): ReadServer & { readonly own: JsonObject } {
  const { grammar, defaults, source, format, origins } = options;
  const { keys, tool, own, settings, upstream, result } = common;
  const found = readServer({
    document,
    keys,
    tool,
    adapter,
    upstream,
    source,
    defaults,
    upstreamDigest: upstreamDigestOf({ own, name: tool.name, settings, masked: result.rules.redact?.patterns ?? [] }),
    schemaProblem: grammar.schemaProblem,
    stepKeys: grammar.steps.flatMap(({ name, configSchema }) => (configSchema === undefined ? [] : [name])),
    explain: (make) => {
      const again = parseDocument(text, format);
      return again.ok ? make({ document: again.document, source, defaults, origins }) : [];
    },
  });
  return { ...found, own: { ...own, ...found.keys } };
}

/** Whether an adapter could not make sense of its keys: they, or the parameters they refer to, have an issue. */
function concernsAdapter(issue: ConfigIssue, adapter: Adapter): boolean {
  const key = topKey(issue);
  return key === undefined || ["params", "input_schema"].includes(key) || Object.hasOwn(ownKeys(adapter), key);
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
  return {
    timeouts: policy.timeouts,
    maxResponseBytes: defaults.maxResponseBytes,
    format: rules.format === "auto" && looksInside(rules) ? "json" : rules.format,
    ...(looksInside(rules) ? { looksInside: true } : {}),
    pool: defaults.pool ?? {},
    reach,
    ...(defaults.egress === undefined ? {} : { egress: defaults.egress }),
  };
}

/** Most declarations have none, and share this. */
const NO_STEPS: ReadonlyMap<string, JsonValue> = new Map();

function stepConfigsOf(keys: JsonObject, { steps }: DeclarationGrammar): ReadonlyMap<string, JsonValue> {
  const configs = new Map<string, JsonValue>();
  for (const { name, configSchema } of steps) {
    const value = configSchema === undefined ? undefined : ownValue(keys, name);
    if (value !== undefined) configs.set(name, value);
  }
  return configs.size === 0 ? NO_STEPS : configs;
}

/** Schemas of the keys that an adapter adds. */
function ownKeys(adapter: Adapter): JsonObject {
  return ownObject(adapter.configSchema, "properties") ?? {};
}

function pick(keys: JsonObject, adapter: Adapter): JsonObject {
  const own = ownKeys(adapter);
  const picked: Record<string, JsonValue> = {};
  for (const name of Object.keys(keys)) {
    const value = keys[name];
    if (value !== undefined && Object.hasOwn(own, name)) picked[name] = value;
  }
  return picked;
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
