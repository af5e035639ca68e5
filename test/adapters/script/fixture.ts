import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createScriptAdapter } from "../../../src/adapters/script/index.ts";
import type { Adapter, AdapterSettings, Configured, Upstream } from "../../../src/core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent, UpstreamExchange, UpstreamResult } from "../../../src/core/call.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { DeclaredTool } from "../../../src/core/tool.ts";
import { createEnvironmentSecrets } from "../../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../../src/secrets/secret-memory.ts";
import { makeContext } from "../../pipeline/fixtures.ts";

/** A folder for programs, which goes away with all it holds. */
export interface TestFolder extends AsyncDisposable {
  readonly path: string;
  /** Writes a file that can be run. */
  program(name: string, text: string | Buffer, mode?: number): Promise<string>;
  /** Lines of a file; none where there is no such file. */
  lines(name: string): Promise<string[]>;
  /** Resolves with the lines once there are so many. */
  waitForLines(name: string, count: number): Promise<string[]>;
}

/** Makes a folder. */
export async function testFolder(): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), "toolgate-script-"));
  const lines = async (name: string): Promise<string[]> => {
    const text = await readFile(join(path, name), "utf8").catch(() => "");
    return text.split("\n").slice(0, -1);
  };
  return {
    path,
    async program(name, text, mode = 0o755) {
      const file = join(path, name);
      await writeFile(file, text);
      await chmod(file, mode);
      return file;
    },
    lines,
    async waitForLines(name, count) {
      while (true) {
        const found = await lines(name);
        if (found.length >= count) return found;
        await delay(5);
      }
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** What to declare. */
export interface ToolOptions {
  readonly keys: JsonObject;
  readonly name?: string;
  /** Parameters by name; all required, where `required` names no others. */
  readonly params?: JsonObject;
  readonly required?: readonly string[];
  readonly delivery?: DeclaredTool["delivery"];
  readonly hints?: DeclaredTool["hints"];
  readonly timeouts?: Partial<AdapterSettings["timeouts"]>;
  readonly maxResponseBytes?: number;
  readonly format?: AdapterSettings["format"];
  /** The gateway's environment; `PATH` is this process's where it is not set. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Where relative paths begin. */
  readonly folder?: string;
  readonly shell?: boolean;
  readonly clock?: Clock;
  readonly changed?: () => void;
  /** The adapter of another tool, to share its launcher. */
  readonly adapter?: Adapter;
}

/** An adapter as {@link openTool} makes it. */
export function adapterFor(options: Pick<ToolOptions, "environment" | "folder" | "shell">): Adapter {
  const environment = { PATH: process.env["PATH"], ...options.environment };
  return createScriptAdapter({ environment, folder: options.folder ?? tmpdir(), shell: options.shell ?? false });
}

/** Compiles a declaration. */
function configure(options: ToolOptions, adapter = options.adapter ?? adapterFor(options)): Configured<unknown> {
  const properties = options.params ?? {};
  const tool: DeclaredTool = {
    name: options.name ?? "run_report",
    title: "",
    description: "Runs a report",
    kind: "script",
    inputSchema: {
      type: "object",
      properties,
      required: options.required ?? Object.keys(properties),
      additionalProperties: false,
    },
    outputSchema: undefined,
    hints: options.hints ?? {},
    labels: {},
    delivery: options.delivery ?? "conclusive",
    enabled: true,
  };
  return adapter.configure(options.keys, tool, {
    timeouts: { connectMs: 60_000, readMs: 60_000, idleMs: 60_000, ...options.timeouts },
    maxResponseBytes: options.maxResponseBytes ?? 16 * 1024 * 1024,
    format: options.format ?? "auto",
    pool: {},
    reach: "all",
  });
}

/** Messages of a declaration that is refused, each after its pointer. */
export function problemsOf(options: ToolOptions): string[] {
  const configured = configure(options);
  return configured.ok ? [] : configured.issues.map((issue) => `${issue.pointer} ${issue.message}`);
}

/** Compiles and opens a tool. Fails where the declaration is refused. */
export async function openTool(options: ToolOptions): Promise<Upstream> {
  const adapter = options.adapter ?? adapterFor(options);
  const configured = configure(options, adapter);
  if (!configured.ok) throw new Error(JSON.stringify(configured.issues));
  const deps = {
    clock: options.clock ?? systemClock,
    logger: silentLogger,
    secrets: createEnvironmentSecrets(options.environment ?? {}, new SecretMemory()),
    changed: options.changed ?? (() => undefined),
  };
  return adapter.open(configured.config, deps, new AbortController().signal);
}

/** How a test calls. */
export interface CallOptions extends Partial<CallContext> {
  readonly validateOnly?: boolean;
}

/** A call's events as they come. */
export function invoke(tool: Upstream, args: JsonObject = {}, options: CallOptions = {}): AsyncIterable<UpstreamEvent> {
  const { validateOnly = false, ...context } = options;
  const toolCall: ToolCall = { tool: "run_report", arguments: args, validateOnly, maxLength: undefined };
  return tool.invoke(toolCall, makeContext({ deadlineMs: Number.MAX_SAFE_INTEGER, ...context }));
}

/** What a call came to. */
export interface Outcome {
  readonly deltas: readonly string[];
  readonly logs: readonly string[];
  readonly progress: readonly UpstreamEvent[];
  readonly exchange: UpstreamExchange | undefined;
  /** Absent where the call failed. */
  readonly result: UpstreamResult | undefined;
  readonly error: GatewayError | undefined;
}

/** Calls and reads everything. An error that is no GatewayError fails the test. */
export async function call(tool: Upstream, args: JsonObject = {}, options: CallOptions = {}): Promise<Outcome> {
  const deltas: string[] = [];
  const logs: string[] = [];
  const progress: UpstreamEvent[] = [];
  let exchange: UpstreamExchange | undefined;
  let result: UpstreamResult | undefined;
  let error: GatewayError | undefined;
  try {
    for await (const event of invoke(tool, args, options)) {
      if (event.type === "upstream-delta") deltas.push(event.text);
      else if (event.type === "log") logs.push(event.message);
      else if (event.type === "progress") progress.push(event);
      else if (event.type === "exchange") exchange = event.exchange;
      else if (event.type === "upstream-result") result = event.result;
    }
  } catch (caught) {
    if (!(caught instanceof GatewayError)) throw caught;
    error = caught;
  }
  return { deltas, logs, progress, exchange, result, error };
}

/** Opens a tool for one call. */
export async function callOnce(options: ToolOptions, args: JsonObject = {}, how: CallOptions = {}): Promise<Outcome> {
  await using tool = await openTool(options);
  return await call(tool, args, how);
}

/** Text of a result. */
export function textOf({ result }: Outcome): string {
  return (result?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("|");
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
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
