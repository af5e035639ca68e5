import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createMcpAdapter, type McpOptions } from "../../../src/adapters/mcp/index.ts";
import type { McpConfig } from "../../../src/adapters/mcp/mcp-config.ts";
import type { Adapter, AdapterDeps, AdapterSettings, Configured, Upstream } from "../../../src/core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent, UpstreamResult } from "../../../src/core/call.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { DeclaredTool } from "../../../src/core/tool.ts";
import { createEnvironmentSecrets } from "../../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../../src/secrets/secret-memory.ts";
import { makeContext } from "../../pipeline/fixtures.ts";

const FAKE = fileURLToPath(new URL("fake-program.ts", import.meta.url));

/** What to declare. */
export interface ServerOptions {
  /** The block `mcp`. */
  readonly mcp: JsonObject;
  /** Further keys of the declaration. */
  readonly keys?: JsonObject;
  readonly name?: string;
  readonly hints?: DeclaredTool["hints"];
  readonly timeouts?: Partial<AdapterSettings["timeouts"]>;
  readonly maxResponseBytes?: number;
  readonly reach?: AdapterSettings["reach"];
  readonly egress?: AdapterSettings["egress"];
  /** The gateway's environment; `PATH` is this process's where it is not set. */
  readonly environment?: Record<string, string | undefined>;
  readonly folder?: string;
  readonly clock?: Clock;
  readonly cache?: McpOptions["cache"];
  readonly logins?: McpOptions["logins"];
  readonly lookup?: McpOptions["lookup"];
  readonly logger?: AdapterDeps["logger"];
}

/** A server that was opened. */
export interface OpenServer extends AsyncDisposable {
  readonly upstream: Upstream;
  /** Resolves when the condition holds; it is looked at whenever something changed. */
  until(condition: () => boolean): Promise<void>;
  /** Resolves when the tools are known and can be called. */
  ready(): Promise<OpenServer>;
  /** Names of the tools that are offered. */
  names(): string[];
}

function adapterFor(options: ServerOptions): Adapter<McpConfig> {
  const { environment = {}, folder = tmpdir(), cache, logins, lookup } = options;
  return createMcpAdapter({
    environment: { PATH: process.env["PATH"], ...environment },
    folder,
    ...(cache === undefined ? {} : { cache }),
    ...(logins === undefined ? {} : { logins }),
    ...(lookup === undefined ? {} : { lookup }),
  });
}

/** Compiles a declaration. */
function configure(options: ServerOptions, adapter = adapterFor(options)): Configured<McpConfig> {
  const tool: DeclaredTool = {
    name: options.name ?? "fake",
    title: "",
    description: "",
    kind: "mcp",
    inputSchema: { type: "object" },
    outputSchema: undefined,
    hints: options.hints ?? {},
    labels: {},
    delivery: "conclusive",
    enabled: true,
  };
  return adapter.configure({ ...options.keys, mcp: options.mcp }, tool, {
    timeouts: { connectMs: 10_000, readMs: 60_000, idleMs: 60_000, ...options.timeouts },
    maxResponseBytes: options.maxResponseBytes ?? 16 * 1024 * 1024,
    format: "auto",
    pool: {},
    reach: options.reach ?? "all",
    ...(options.egress === undefined ? {} : { egress: options.egress }),
  });
}

/** Messages of a declaration that is refused, each after its pointer. */
export function problemsOf(options: ServerOptions): string[] {
  const configured = configure(options);
  return configured.ok ? [] : configured.issues.map((issue) => `${issue.pointer} ${issue.message}`);
}

/** Compiles and opens a server. Fails where the declaration is refused. */
export async function openServer(options: ServerOptions): Promise<OpenServer> {
  const adapter = adapterFor(options);
  const configured = configure(options, adapter);
  if (!configured.ok) throw new Error(JSON.stringify(configured.issues));
  const waiting = new Set<() => void>();
  const deps: AdapterDeps = {
    clock: options.clock ?? systemClock,
    logger: options.logger ?? silentLogger,
    secrets: createEnvironmentSecrets(options.environment ?? {}, new SecretMemory()),
    changed: () => {
      for (const look of waiting) look();
    },
  };
  const upstream = await adapter.open(configured.config, deps, new AbortController().signal);
  const server: OpenServer = {
    upstream,
    until: (condition) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!condition()) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    async ready() {
      await server.until(() => upstream.availability().state === "ready" && upstream.offer?.() !== undefined);
      return server;
    },
    names: () => upstream.offer?.()?.tools.map(({ name }) => name) ?? [],
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
  return server;
}

/** A folder, which goes away with all it holds. */
export interface TestFolder extends AsyncDisposable {
  readonly path: string;
  /** The block `mcp` of a fake program that notes what it gets in the file `log`. */
  fake(options?: JsonObject, log?: string): JsonObject;
  /** Lines of a file; none where there is no such file. */
  lines(name?: string): string[];
  /** Resolves with the lines once one has this in it. */
  waitFor(text: string, name?: string): Promise<string[]>;
  /** Process ids that were noted. */
  pids(name?: string): number[];
}

/** Makes a folder. */
export async function testFolder(): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), "toolgate-mcp-"));
  const lines = (name = "log"): string[] => {
    try {
      return readFileSync(join(path, name), "utf8").split("\n").slice(0, -1);
    } catch {
      return [];
    }
  };
  return {
    path,
    fake: (options = {}, log = "log") => ({
      command: process.execPath,
      args: [FAKE, JSON.stringify(options), join(path, log)],
      // It starts three times as fast from compiled code.
      env: { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" },
      protocol: "legacy",
    }),
    lines,
    async waitFor(text, name) {
      while (true) {
        const found = lines(name);
        if (found.some((line) => line.includes(text))) return found;
        await delay(5);
      }
    },
    pids: (name) =>
      lines(name).flatMap((line) => (/^(?:start|child) (\d+)$/.test(line) ? [Number(line.split(" ")[1])] : [])),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** A call's events as they come. */
export function invoke(
  { upstream }: OpenServer,
  tool: string,
  args: JsonObject = {},
  { servedAs, ...options }: Partial<CallContext> & Pick<ToolCall, "servedAs"> = {},
): AsyncIterable<UpstreamEvent> {
  const toolCall: ToolCall = { tool, arguments: args, validateOnly: false, maxLength: undefined };
  const called = servedAs === undefined ? toolCall : { ...toolCall, servedAs };
  return upstream.invoke(called, makeContext({ deadlineMs: Number.MAX_SAFE_INTEGER, ...options }));
}

/** What a call came to. */
export interface Outcome {
  readonly events: readonly UpstreamEvent[];
  /** Absent where the call failed. */
  readonly result: UpstreamResult | undefined;
  readonly error: GatewayError | undefined;
}

/** Calls and reads everything. An error that is no GatewayError fails the test. */
export async function call(
  server: OpenServer,
  tool: string,
  args: JsonObject = {},
  options: Partial<CallContext> & Pick<ToolCall, "servedAs"> = {},
): Promise<Outcome> {
  const events: UpstreamEvent[] = [];
  try {
    for await (const event of invoke(server, tool, args, options)) events.push(event);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { events, result: undefined, error };
  }
  const last = events.at(-1);
  return { events, result: last?.type === "upstream-result" ? last.result : undefined, error: undefined };
}

/** Text of a result. */
export function textOf({ result, error }: Outcome): string {
  if (error !== undefined) throw error;
  return (result?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("|");
}

/** Whether a process is there. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Resolves when none of the processes is there. */
export async function allGone(pids: readonly number[]): Promise<void> {
  while (pids.some(isAlive)) await delay(5);
}
