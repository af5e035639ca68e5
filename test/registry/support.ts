import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Adapter, AdapterDeps, ProbeReport, Upstream } from "../../src/core/adapter.ts";
import type { CallContext, ToolCall, ToolEvent } from "../../src/core/call.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { LogFields, Logger } from "../../src/core/logger.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { ANONYMOUS } from "../../src/core/principal.ts";
import type { DeclarationProblem, RegisterOptions, RegistryEvent } from "../../src/core/registry.ts";
import type { SecretSource } from "../../src/core/secrets.ts";
import type { Availability, DeclaredTool } from "../../src/core/tool.ts";
import type { Declaration } from "../../src/registry/declaration.ts";
import type { ParseDeclaration } from "../../src/registry/declaration-source.ts";
import { contractDigestOf } from "../../src/registry/digests.ts";
import type { ComposeTool } from "../../src/registry/open-tool.ts";
import { createToolRegistry, type Registry, type RegistryDeps } from "../../src/registry/tool-registry.ts";
import { createEnvironmentSecrets } from "../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../src/secrets/secret-memory.ts";
import { createMemoryRegistrations } from "../../src/stores/memory-registrations.ts";
import type { FakeClock } from "../core/fake-clock.ts";
import { POLICY } from "../pipeline/fixtures.ts";

export { ANONYMOUS };

/** A signal that never aborts. */
export const OPEN_END: AbortSignal = new AbortController().signal;

/** An upstream that a test looks at and steers. */
export interface DemoUpstream extends Upstream {
  readonly fields: ReadonlyMap<string, string>;
  disposals: number;
  state: Availability;
  report: ProbeReport | Promise<ProbeReport>;
  changed(): void;
}

/** An adapter whose upstreams a test can see. `open: fail` in a declaration makes opening fail. */
export interface DemoAdapter extends Adapter<ReadonlyMap<string, string>> {
  /** All that were opened, in order. */
  readonly opened: DemoUpstream[];
  /** What `open` waits for. */
  gate: Promise<void>;
}

export function createDemoAdapter(): DemoAdapter {
  const opened: DemoUpstream[] = [];
  const adapter: DemoAdapter = {
    kind: "http",
    configSchema: {},
    opened,
    gate: Promise.resolve(),
    configure: () => ({ ok: false, issues: [] }),
    explain: () => [],
    async open(fields, deps) {
      await adapter.gate;
      if (fields.get("open") === "fail") throw new Error("secret detail");
      const upstream = demoUpstream(fields, deps);
      opened.push(upstream);
      return upstream;
    },
  };
  return adapter;
}

function demoUpstream(fields: ReadonlyMap<string, string>, deps: AdapterDeps): DemoUpstream {
  const upstream: DemoUpstream = {
    fields,
    disposals: 0,
    state: { state: "ready", reason: "" },
    report: { ok: true, message: "reached", mend: "" },
    changed: () => deps.changed(),
    availability: () => upstream.state,
    probe: async () => upstream.report,
    async *invoke() {
      if (upstream.disposals > 0) throw new Error("called after it was disposed");
      yield {
        type: "upstream-result",
        result: { content: [{ type: "text", text: fields.get("description") ?? "" }], effect: "none" },
      };
    },
    async [Symbol.asyncDispose]() {
      upstream.disposals += 1;
      if (fields.get("dispose") === "fail") throw new Error("cannot be disposed");
    },
  };
  return upstream;
}

/** A parse function for lines `key: value`: `name` is required, `note` gives a note, any other line is a problem. */
export function createDemoParse(adapter: Adapter): ParseDeclaration & { readonly parsed: string[] } {
  const parsed: string[] = [];
  const parse: ParseDeclaration = (text, { source }) => {
    parsed.push(source);
    const fields = new Map<string, string>();
    const problems: DeclarationProblem[] = [];
    for (const [index, line] of text.split("\n").entries()) {
      const match = /^([a-z_]+): (.*)$/.exec(line);
      if (match?.[1] !== undefined && match[2] !== undefined) fields.set(match[1], match[2]);
      else if (line.trim() !== "" && !line.startsWith("#")) {
        problems.push(problem(source, index + 1, `cannot read "${line}"; write key: value`));
      }
    }
    const name = fields.get("name");
    if (name === undefined) problems.push(problem(source, 1, "`name` is missing"));
    if (name === undefined || problems.length > 0) return { ok: false, name, problems };
    return { ok: true, declaration: declare(name, fields, source, adapter) };
  };
  return Object.assign(parse, { parsed });
}

function problem(source: string, line: number, message: string, note = false): DeclarationProblem {
  return { source, line, column: 1, message, lastGoodServing: false, note };
}

/** Of `roles: a b` and `subjects: x y`. */
function accessOf(fields: ReadonlyMap<string, string>): Pick<Declaration["policy"], "access"> {
  const [roles, subjects] = ["roles", "subjects"].map((key) => fields.get(key)?.split(" "));
  return roles === undefined && subjects === undefined
    ? {}
    : { access: { roles: roles ?? [], subjects: subjects ?? [] } };
}

function declare(name: string, fields: ReadonlyMap<string, string>, source: string, adapter: Adapter): Declaration {
  const note = fields.get("note");
  const tool: DeclaredTool = {
    name,
    title: "",
    description: fields.get("description") ?? "",
    kind: "http",
    inputSchema: { type: "object" },
    outputSchema: undefined,
    hints: {},
    labels: {},
    delivery: "conclusive",
    enabled: fields.get("enabled") !== "false",
  };
  return {
    source,
    namePlace: { line: [...fields.keys()].indexOf("name") + 1, column: 1 },
    tool,
    adapter,
    config: fields,
    rules: {
      format: "auto",
      successField: undefined,
      successValue: true,
      dataField: undefined,
      maxLength: 1000,
      truncation: "head",
    },
    policy: {
      ...POLICY,
      timeouts: { connectMs: 1, readMs: 1, idleMs: 1 },
      upstream: "http://127.0.0.1:1",
      ...accessOf(fields),
    },
    stepConfigs: new Map(),
    contractDigest: contractDigestOf(tool),
    digest: createHash("sha256")
      .update(
        [...fields]
          .map(([key, value]) => `${key}: ${value}`)
          .toSorted()
          .join(),
      )
      .digest("hex"),
    notes: note === undefined ? [] : [problem(source, 1, note, true)],
    explained: [{ key: "timeout.total", value: "60s", origin: "default" }],
  };
}

/** A path from call to events without policy or shaping. */
export const demoCompose: ComposeTool = (_declaration, _definition, upstream) => ({
  steps: ["demo-step"],
  async *run(call, context) {
    for await (const event of upstream.invoke(call, context)) {
      if (event.type !== "upstream-result") continue;
      const { content, effect } = event.result;
      const result = { content, structuredJson: undefined, failure: undefined, truncation: undefined };
      yield { type: "completed", result, effect, attempts: 1 };
    }
  },
});

/** One line of a log. */
export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** A logger whose lines a test reads. */
export function createLogRecorder(lines: LogLine[] = []): Logger & { readonly lines: LogLine[] } {
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push({ level, message, fields });
  return {
    lines,
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: () => createLogRecorder(lines),
  };
}

const NO_SECRETS: SecretSource = createEnvironmentSecrets({}, new SecretMemory());

/** Takes what is to be done when a test is over; a test that runs beside others gives its own. */
export type Finish = (task: () => Promise<void>) => void;

/** A new folder that goes with the test. */
export async function temporaryFolder(finish: Finish = onTestFinished): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-registry-"));
  finish(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** What a test can set; the rest has defaults. */
export interface RegistryFixtureOptions extends Partial<Omit<RegistryDeps, "tools">> {
  readonly folder: string;
  readonly tools?: Partial<RegistryDeps["tools"]>;
  readonly finish?: Finish;
}

/** A registry that was made for a test. */
export interface RegistryFixture {
  readonly registry: Registry;
  readonly adapter: DemoAdapter;
  readonly logger: ReturnType<typeof createLogRecorder>;
  readonly parsed: readonly string[];
}

/** Makes a registry with the demo parts. It is disposed after the test, and not started. */
export function makeRegistry(options: RegistryFixtureOptions): RegistryFixture {
  const { folder, tools, finish = onTestFinished, ...given } = options;
  const adapter = createDemoAdapter();
  const logger = createLogRecorder();
  const parse = createDemoParse(adapter);
  const registry = createToolRegistry({
    clock: systemClock,
    logger,
    secrets: NO_SECRETS,
    store: createMemoryRegistrations(),
    parse,
    compose: demoCompose,
    tools: { folder, include: ["**/*.yaml"], settleMs: 100, poll: "auto", pollIntervalMs: 1000, ...tools },
    ...given,
  });
  finish(async () => {
    await registry[Symbol.asyncDispose]();
  });
  return { registry, adapter, logger, parsed: parse.parsed };
}

/** The same, started. */
export async function startRegistry(options: RegistryFixtureOptions): Promise<RegistryFixture> {
  const fixture = makeRegistry(options);
  await fixture.registry.start(OPEN_END);
  return fixture;
}

/** The same with a clock that stands still: it is moved until what is on disk has been read. */
export async function startWithClock(
  clock: FakeClock,
  folder: string,
  options: Partial<RegistryFixtureOptions> = {},
): Promise<RegistryFixture> {
  const fixture = makeRegistry({ ...options, folder, clock, tools: { poll: "always", pollIntervalMs: 3_600_000 } });
  await advanceUntil(clock, 1, fixture.registry.start(OPEN_END));
  return fixture;
}

/** Moves a clock step by step until a promise settles, and settles as it does. */
export async function advanceUntil<T>(clock: FakeClock, stepMs: number, promise: Promise<T>): Promise<T> {
  const wait = { over: false };
  const settling = promise.finally(() => {
    wait.over = true;
  });
  while (!wait.over) await clock.advance(stepMs);
  return settling;
}

/** Text of a declaration. */
export function declaration(name: string, description = "", more = ""): string {
  return `name: ${name}\ndescription: ${description}\n${more}`;
}

/** A request to register a declaration, without conditions. */
export function registration(text: string): RegisterOptions {
  return { text, format: "yaml", validateOnly: false, etag: undefined, mustNotExist: false, leaseMs: undefined };
}

/** Names of all tools. */
export function toolNames(registry: Registry): string[] {
  return registry.list(ANONYMOUS).tools.map((tool) => tool.definition.name);
}

/** Description of a tool; `undefined` where there is none. */
export function descriptionOf(registry: Registry, name: string): string | undefined {
  return registry.list(ANONYMOUS).tools.find((tool) => tool.definition.name === name)?.definition.description;
}

/** Settles as soon as a condition holds, looking at each event of the registry. Fails after `limitMs`. */
export async function until(registry: Registry, holds: () => boolean, limitMs = 20_000): Promise<void> {
  if (holds()) return;
  const signal = AbortSignal.timeout(limitMs);
  for await (const _event of registry.watch(registry.list(ANONYMOUS).revision, ANONYMOUS, signal)) {
    if (holds()) return;
  }
  throw new Error(`did not hold within ${limitMs} ms: ${holds.toString()}`);
}

/** Reads events of a watch until one is the last wanted. */
export async function readEvents(
  events: AsyncIterable<RegistryEvent>,
  isLast: (event: RegistryEvent) => boolean,
): Promise<RegistryEvent[]> {
  const read: RegistryEvent[] = [];
  for await (const event of events) {
    read.push(event);
    if (isLast(event)) return read;
  }
  throw new Error("the watch ended");
}

/** Calls a tool and gives the text of its result. */
export async function callTool(registry: Registry, name: string): Promise<string> {
  using lease = registry.acquire(name, ANONYMOUS);
  return await textOf(lease.run(toolCall(name), callContext()));
}

/** Text of the result of a call. */
export async function textOf(events: AsyncIterable<ToolEvent>): Promise<string> {
  for await (const event of events) {
    const part = event.type === "completed" ? event.result.content[0] : undefined;
    if (part?.type === "text") return part.text;
  }
  throw new Error("no result");
}

export function toolCall(tool: string): ToolCall {
  return { tool, arguments: {}, validateOnly: false, maxLength: undefined };
}

export function callContext(): CallContext {
  return {
    callId: "0190",
    principal: ANONYMOUS,
    signal: OPEN_END,
    deadlineMs: Number.POSITIVE_INFINITY,
    attempt: 1,
    explain: false,
    sessionId: undefined,
    turnId: undefined,
    taskId: undefined,
    toolCallId: undefined,
    traceparent: undefined,
    logger: silentLogger,
  };
}
