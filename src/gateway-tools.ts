import { join } from "node:path";
import { createAdapters } from "./adapters/index.ts";
import { RESULT_TOOLS } from "./adapters/results/declarations.ts";
import { createResultsAdapter } from "./adapters/results/index.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import type { LiveSettings } from "./config/live-settings.ts";
import type { Adapter, PrivateReach } from "./core/adapter.ts";
import type { Clock } from "./core/clock.ts";
import { GatewayError } from "./core/errors.ts";
import type { Logger } from "./core/logger.ts";
import type { CallWatch, ToolPath } from "./core/observation.ts";
import type { HandleValues, ResultReader } from "./core/results.ts";
import type { Step } from "./core/step.ts";
import type { ToolKind } from "./core/tool.ts";
import { withMaskedLog } from "./observability/redacting-logger.ts";
import { composePipeline } from "./pipeline/compose.ts";
import type { SchemaChecker } from "./pipeline/schema-checker.ts";
import type { Declaration } from "./registry/declaration.ts";
import { createDeclarationGrammar, type DeclarationGrammar } from "./registry/declaration-grammar.ts";
import type { ParseDeclaration, ReadAhead } from "./registry/declaration-source.ts";
import type { ComposeTool } from "./registry/open-tool.ts";
import { parseDeclaration } from "./registry/parse-declaration.ts";
import { createReadAhead } from "./registry/read-ahead.ts";
import { restrictRegistrations } from "./registry/registration-policy.ts";
import { patternsOf, redactorOfResults } from "./secrets/result-redactor.ts";
import type { Secrets } from "./secrets/secrets.ts";
import { createKeep, createOverflow } from "./shaping/call-keeping.ts";
import { createHandleValues } from "./shaping/reading/handle-values.ts";
import { createResultReader } from "./shaping/reading/result-reader.ts";
import { masksInPieces } from "./shaping/redact-rules.ts";
import { createResultShaper } from "./shaping/result-shaper.ts";
import { createJudge, judgeResults } from "./shaping/success.ts";
import type { WindowBudgets } from "./shaping/window-budget.ts";
import { createFileLogins, loginsPlace } from "./stores/file-logins.ts";
import { createFileTexts } from "./stores/file-texts.ts";
import { ResultFiles } from "./stores/result-files.ts";

/** What tools are read and run with; see `GatewayOptions`. */
interface ToolMeans {
  readonly config: GatewayConfig;
  readonly secrets: Secrets;
  readonly logger: Logger;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** Makes what reads declarations, those over the wire within the bounds of the configuration. */
export function declarationReader(
  means: ToolMeans,
  settings: LiveSettings,
  { steps, checker, results, clock }: ReaderParts,
): Reader {
  const { registration } = means.config;
  const grammarWith = (adapters: ReadonlyMap<ToolKind, Adapter>): DeclarationGrammar =>
    createDeclarationGrammar({ adapters, steps, schemaProblem: (schema) => checker.problem(schema) });
  const adapters = adaptersByKind(means, clock);
  const grammar = grammarWith(adapters);
  const parse = restrictRegistrations(registration, parseWith(grammar, settings, registration.privateAddresses));
  const builtIn = results === undefined ? () => [] : resultTools(grammarWith, results.reader, settings);
  const readAhead = createReadAhead({ clock, grammar, compilePattern: (source) => checker.compilePattern(source) });
  const programs = (): number => [...adapters.values()].reduce((sum, adapter) => sum + (adapter.programs?.() ?? 0), 0);
  return { parse, readAhead, builtIn, prepare: () => grammar.prepare(), programs };
}

/** What reads declarations. */
interface Reader {
  readonly parse: ParseDeclaration;
  readonly readAhead: ReadAhead;
  builtIn(): readonly Declaration[];
  /** Compiles what all declarations are checked with. */
  prepare(): Promise<void>;
  /** Programs of this machine that run for tools. */
  programs(): number;
}

interface ReaderParts {
  readonly steps: readonly Step[];
  readonly checker: SchemaChecker;
  readonly results: KeptResults | undefined;
  readonly clock: Clock;
}

/** The tools by which models read kept results: declared like any tool, so that the same policies hold for them. */
function resultTools(
  grammarWith: (adapters: ReadonlyMap<ToolKind, Adapter>) => DeclarationGrammar,
  reader: ResultReader,
  settings: LiveSettings,
): () => readonly Declaration[] {
  const adapter = createResultsAdapter(reader);
  const parse = parseWith(grammarWith(new Map([[adapter.kind, adapter]])), settings, "none");
  return () =>
    RESULT_TOOLS.map(({ name, text }) => {
      const outcome = parse(text, { format: "yaml", source: `built-in:${name}` });
      if (outcome.ok) return outcome.declaration;
      throw new GatewayError("INTERNAL", "internal error", { cause: new Error(outcome.problems[0]?.message) });
    });
}

/** Results that are kept, and the ways to them. */
interface KeptResults {
  readonly store: ResultFiles;
  readonly reader: ResultReader;
  readonly handles: HandleValues;
}

/** `undefined` where the configuration does not have results kept. Nothing is read or written yet. */
export function keepResults({ config, secrets, logger }: ToolMeans, clock: Clock): KeptResults | undefined {
  const { results, state } = config;
  if (!results.keep) return undefined;
  const { encryptionKey: keyRef, ...limits } = results;
  const means = { secrets: secrets.source, clock, logger };
  const store = new ResultFiles({ ...limits, ...means, keyRef, folder: join(state.folder, "results") });
  return { store, reader: createResultReader(store, secrets.redactor), handles: createHandleValues(store) };
}

/** Reads declarations by the settings of the moment. `reach`: how far those that come over the wire may lead. */
function parseWith(grammar: DeclarationGrammar, settings: LiveSettings, reach: PrivateReach): ParseDeclaration {
  return (text, { format, source }) =>
    parseDeclaration(text, {
      format,
      source,
      grammar,
      reach: source === "api" ? reach : "all",
      ...settings.ofDeclarations,
    });
}

/** What a tool's path takes beside its steps. */
interface ComposeMeans {
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly results: KeptResults | undefined;
  readonly budgets: WindowBudgets;
  readonly watch: CallWatch | undefined;
}

/** Makes each tool's path: the steps around its adapter, then what becomes of its result. */
export function composeWith(
  steps: readonly Step[],
  { secrets, clock, results, budgets, watch }: ComposeMeans,
): ComposeTool {
  return ({ policy, stepConfigs, rules }, tool, upstream) => {
    const pipeline = composePipeline({ steps, tool, policy, stepConfigs, deps: { clock } });
    // Inside the pipeline, since its steps have to know a failure that only the result rules tell.
    const judged = judgeResults(createJudge(tool.name, rules), (call, context) => upstream.invoke(call, context));
    const invoke = pipeline.wrap(judged);
    const readOnly = tool.hints.readOnly === true;
    const redactor = redactorOfResults(rules.redact, secrets);
    const shaper = createResultShaper({ tool: tool.name, rules, redactor, readOnly, budgets });
    const logged = withMaskedLog(patternsOf(rules.redact));
    const store = rules.handle === false || tool.delivery === "incremental" ? undefined : results?.store;
    const path: ToolPath = (call, context) => {
      if (store === undefined) return shaper.shape(invoke(call, logged(context)), call, { context });
      const origin = { tool: tool.name, principal: context.principal.id };
      const overflow = masksInPieces(rules.redact) ? createOverflow(store, { redactor, rules }, origin) : undefined;
      return shaper.shape(invoke(call, { ...logged(context), overflow }), call, {
        context,
        keep: createKeep(store, origin),
      });
    };
    return {
      steps: pipeline.names,
      run: watch === undefined ? path : (call, context) => watch.run(tool, path, call, context),
    };
  };
}

function adaptersByKind(
  { config, secrets, environment = {} }: ToolMeans,
  clock: Clock,
): ReadonlyMap<ToolKind, Adapter> {
  const { tools, scripts, servers, state } = config;
  const adapters = createAdapters({
    environment,
    folder: tools.folder,
    shell: scripts.shell,
    starts: servers.starts,
    cache: createFileTexts(join(state.folder, "servers")),
    logins: createFileLogins({ ...loginsPlace(state), clock, secrets: secrets.source }),
  });
  return new Map(adapters.map((adapter) => [adapter.kind, adapter]));
}
