import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHttpAdapter } from "../../src/adapters/http/index.ts";
import { ownText } from "../../src/config/own-values.ts";
import type { Adapter, AdapterDeps, Offer, Upstream, UpstreamTool } from "../../src/core/adapter.ts";
import type { ToolCall, ToolEvent, UpstreamResult } from "../../src/core/call.ts";
import { systemClock } from "../../src/core/clock.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { isJsonObject, type JsonObject, ownValue, stringifyJson } from "../../src/core/json.ts";
import type { DeclarationProblem, ToolView } from "../../src/core/registry.ts";
import type { Redactor } from "../../src/core/secrets.ts";
import type { Availability } from "../../src/core/tool.ts";
import { composePipeline } from "../../src/pipeline/compose.ts";
import { createPipelineSteps } from "../../src/pipeline/index.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import type { DeclarationDefaults } from "../../src/registry/declaration.ts";
import { createDeclarationGrammar } from "../../src/registry/declaration-grammar.ts";
import type { ParseDeclaration } from "../../src/registry/declaration-source.ts";
import type { ComposeTool } from "../../src/registry/open-tool.ts";
import { parseDeclaration } from "../../src/registry/parse-declaration.ts";
import type { Registry, RegistryDeps } from "../../src/registry/tool-registry.ts";
import { createResultShaper } from "../../src/shaping/result-shaper.ts";
import { createJudge, judgeResults } from "../../src/shaping/success.ts";
import {
  ANONYMOUS,
  callContext,
  createLogRecorder,
  type LogLine,
  makeRegistry,
  OPEN_END,
  temporaryFolder,
  toolCall,
} from "./support.ts";

/** An upstream of a server that a test looks at and steers. */
export interface DemoServer extends Upstream {
  /** What its declaration says under `mcp`. */
  readonly keys: JsonObject;
  /** All calls that reached it. */
  readonly calls: ToolCall[];
  disposals: number;
  state: Availability;
  /** What the next calls give; default: the arguments as JSON. */
  answer: ((call: ToolCall) => UpstreamResult) | undefined;
  /** Offers these from now on. */
  offers(tools: readonly UpstreamTool[], notes?: Offer["notes"]): void;
  /** Is in this state from now on. */
  becomes(state: Availability): void;
}

/** An adapter of servers. `mcp.tools: none` in a declaration: the server tells of none before the test says so. */
export interface ServerAdapter extends Adapter<JsonObject> {
  /** All that were opened, in order. */
  readonly opened: DemoServer[];
  /** What servers offer that are opened from now on, by `mcp.server`. */
  readonly tools: Map<string, readonly UpstreamTool[]>;
}

function createServerAdapter(): ServerAdapter {
  const adapter: ServerAdapter = {
    kind: "mcp",
    offers: true,
    configSchema: {
      type: "object",
      required: ["mcp"],
      properties: { mcp: { type: "object", properties: { server: { type: "string" }, version: { type: "string" } } } },
    },
    opened: [],
    tools: new Map(),
    configure: (keys) => {
      const config = ownValue(keys, "mcp");
      return {
        ok: true,
        config: isJsonObject(config) ? config : {},
        warnings: [],
        readOnly: false,
        upstream: "demo:1",
      };
    },
    explain: (config) => [{ key: "mcp.server", value: ownText(config, "server") }],
    open: async (keys, deps) => {
      const opened = demoServer(keys, deps, adapter.tools.get(ownText(keys, "server")));
      adapter.opened.push(opened);
      return opened;
    },
  };
  return adapter;
}

function demoServer(keys: JsonObject, deps: AdapterDeps, tools: readonly UpstreamTool[] | undefined): DemoServer {
  let offer: Offer | undefined = tools === undefined ? undefined : { tools, notes: [] };
  const upstream: DemoServer = {
    keys,
    calls: [],
    disposals: 0,
    state: { state: "ready", reason: "" },
    answer: undefined,
    offers(next, notes = []) {
      offer = { tools: next, notes };
      deps.changed();
    },
    becomes(state) {
      upstream.state = state;
      deps.changed();
    },
    availability: () => upstream.state,
    offer: () => offer,
    probe: async () => ({ ok: true, message: "answers", mend: "" }),
    async *invoke(call) {
      if (upstream.disposals > 0) throw new Error("called after it was disposed");
      upstream.calls.push(call);
      const result = upstream.answer?.(call) ?? { value: call.arguments, content: [], effect: "none" };
      yield { type: "upstream-result", result };
    },
    async [Symbol.asyncDispose]() {
      upstream.disposals += 1;
    },
  };
  return upstream;
}

/** A tool as a server offers it; without more, one that takes a text `q`. */
export function offered(name: string, more: Partial<UpstreamTool> = {}): UpstreamTool {
  return {
    name,
    title: "",
    description: `Does what ${name} does`,
    inputSchema: { type: "object", properties: { q: { type: "string" } } },
    outputSchema: undefined,
    hints: {},
    ...more,
  };
}

const NO_REDACTION: Redactor = {
  text: (value) => value,
  stream: () => ({ push: (piece) => piece, end: () => "" }),
};

/** What a gateway puts around an adapter, with the steps that are given. */
function composeAll(steps: ReturnType<typeof createPipelineSteps>): ComposeTool {
  return ({ policy, stepConfigs, rules }, tool, upstream) => {
    const pipeline = composePipeline({ steps, tool, policy, stepConfigs, deps: { clock: systemClock } });
    const judged = judgeResults(createJudge(tool.name, rules), (call, context) => upstream.invoke(call, context));
    const invoke = pipeline.wrap(judged);
    const shaper = createResultShaper({ tool: tool.name, rules, redactor: NO_REDACTION, readOnly: false });
    return { steps: pipeline.names, run: (call, context) => shaper.shape(invoke(call, context), call) };
  };
}

/** A registry of servers that was made for a test. */
export interface ServersFixture {
  readonly registry: Registry;
  readonly servers: ServerAdapter;
  readonly folder: string;
  readonly lines: readonly LogLine[];
  /** Writes a file into the watched folder. */
  write(name: string, text: string): Promise<void>;
}

/** What a test may say. */
export interface ServersOptions extends Partial<Omit<RegistryDeps, "tools">> {
  readonly files?: Readonly<Record<string, string>>;
  readonly offers?: Readonly<Record<string, readonly UpstreamTool[]>>;
  readonly defaults?: Partial<DeclarationDefaults>;
}

/** Starts a registry with files in its folder, and servers that offer tools. Declarations are read as in a gateway. */
export async function startServers(options: ServersOptions = {}): Promise<ServersFixture> {
  const { files = {}, offers = {}, defaults = {}, ...given } = options;
  const folder = await temporaryFolder();
  const servers = createServerAdapter();
  for (const [name, tools] of Object.entries(offers)) servers.tools.set(name, tools);
  const checker = createSchemaChecker({ maxCompiled: 100 });
  const steps = createPipelineSteps({ checker, changed: (affected) => fixture.registry.lookAgain(affected) });
  const http = createHttpAdapter({ environment: {} });
  const grammar = createDeclarationGrammar({
    adapters: new Map<Adapter["kind"], Adapter>([
      ["http", http],
      ["mcp", servers],
    ]),
    steps,
    schemaProblem: (schema) => checker.problem(schema),
  });
  const parse: ParseDeclaration = (text, { format, source }) =>
    parseDeclaration(text, {
      format,
      source,
      grammar,
      origins: new Map(),
      defaults: { maxResponseBytes: 1_000_000, ...defaults },
    });
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const logger = createLogRecorder();
  const fixture = makeRegistry({ folder, logger, parse, compose: composeAll(steps), steps, ...given });
  await fixture.registry.start(OPEN_END);
  return { registry: fixture.registry, servers, folder, lines: logger.lines, write };
}

/** Text of a declaration of a server. */
export function server(name: string, more = ""): string {
  return `name: ${name}\ntype: mcp\nmcp: {server: ${name}}\n${more}`;
}

/** A tool as List shows it. */
export function listedTool(registry: Registry, name: string): ToolView {
  const found = registry.list(ANONYMOUS).tools.find(({ definition }) => definition.name === name);
  if (found === undefined) throw new Error(`${name} is not listed`);
  return found;
}

/** Problems and notes as `source:line what`. */
export function problemLines(registry: Registry): string[] {
  return registry.list(ANONYMOUS).problems.map(({ source, line, message }: DeclarationProblem) => {
    return `${source}:${line} ${message}`;
  });
}

/** Calls a tool. The completed event, or the reason and text of the error. */
export async function outcome(
  registry: Registry,
  name: string,
  args: JsonObject = {},
): Promise<(ToolEvent & { type: "completed" }) | string> {
  try {
    using lease = registry.acquire(name, ANONYMOUS);
    const call = { ...toolCall(lease.definition.name), arguments: args };
    for await (const event of lease.run(call, callContext())) if (event.type === "completed") return event;
  } catch (error) {
    if (error instanceof GatewayError) return `${error.reason}: ${error.message}`;
    throw error;
  }
  throw new Error("no result");
}

/** JSON of a call's result, or the error. */
export async function answerOf(registry: Registry, name: string, args: JsonObject = {}): Promise<string> {
  const event = await outcome(registry, name, args);
  return typeof event === "string"
    ? event
    : (event.result.structuredJson ?? stringifyJson(event.result.content as never));
}

/** An explained value with its origin. */
export function explained(registry: Registry, name: string, key: string): string | undefined {
  const found = registry.explain(name, ANONYMOUS).values.find((line) => line.key === key);
  return found === undefined ? undefined : `${found.value} (${found.origin})`;
}
