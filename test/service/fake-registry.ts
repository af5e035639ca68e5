import type { CallContext, ToolCall, ToolEvent, ToolResult } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { JsonObject } from "../../src/core/json.ts";
import type {
  CheckResult,
  DeclarationProblem,
  RegisterOptions,
  RegistryEvent,
  ToolRegistry,
  ToolView,
} from "../../src/core/registry.ts";
import type { Availability, ToolDefinition } from "../../src/core/tool.ts";

/** What a fake tool does when it is called. */
export type Run = (call: ToolCall, context: CallContext) => AsyncIterable<ToolEvent>;

/** A registry in memory, without declarations: tools are functions. */
export interface FakeRegistry extends ToolRegistry {
  add(definition: Partial<ToolDefinition> & { name: string }, run?: Run, availability?: Availability): void;
  remove(name: string): void;
  setAvailability(name: string, availability: Availability): void;
  setProblems(problems: readonly DeclarationProblem[]): void;
  /** Sends an event to every watch. */
  announce(event: RegistryEvent): void;
  /** What the next registrations wait for. */
  holdRegistrations(until: Promise<void>): void;
  readonly registered: readonly RegisterOptions[];
  readonly unregistered: readonly string[];
  /** Watches that run. */
  readonly watches: number;
  /** Leases not yet disposed. */
  readonly leases: number;
  diagnosis: (signal: AbortSignal) => Promise<readonly CheckResult[]>;
}

export const READY: Availability = { state: "ready", reason: "" };

export function toolDefinition(partial: Partial<ToolDefinition> & { name: string }): ToolDefinition {
  return {
    title: "",
    description: `The tool ${partial.name}`,
    kind: "http",
    inputSchema: { type: "object", properties: {} },
    outputSchema: undefined,
    hints: {},
    labels: {},
    delivery: "conclusive",
    enabled: true,
    alias: partial.name.replaceAll(/[^A-Za-z0-9_]/g, "_"),
    source: `file:${partial.name}.yaml`,
    etag: `etag-${partial.name}`,
    contractDigest: `digest-${partial.name}`,
    createTimeMs: 1_700_000_000_000,
    updateTimeMs: 1_700_000_000_500,
    defaultTimeoutMs: 60_000,
    toolsets: [],
    leaseExpireTimeMs: undefined,
    ...partial,
  };
}

export function textResult(text: string): ToolResult {
  return { content: [{ type: "text", text }], structuredJson: undefined, failure: undefined, truncation: undefined };
}

export function completed(result: ToolResult = textResult("done")): ToolEvent {
  return { type: "completed", result, effect: "none", attempts: 1 };
}

/** Answers with its arguments as structured JSON. */
const echo: Run = async function* (call) {
  yield completed({ ...textResult(""), content: [], structuredJson: JSON.stringify(call.arguments) });
};

/** Never answers and ignores its signal. */
export const deaf: Run = async function* () {
  await new Promise(() => undefined);
  yield completed();
};

/** Waits for its signal and tells when it came. */
export function waiting(aborted: (reason: unknown) => void, started: () => void = () => undefined): Run {
  return async function* (_call, { signal }) {
    started();
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    aborted(signal.reason);
    signal.throwIfAborted();
    yield completed();
  };
}

export function createFakeRegistry(): FakeRegistry {
  const tools = new Map<string, { view: ToolView; run: Run }>();
  const listeners = new Set<(event: RegistryEvent) => void>();
  const registered: RegisterOptions[] = [];
  const unregistered: string[] = [];
  let problems: readonly DeclarationProblem[] = [];
  let revision = 100;
  let leases = 0;
  let held: Promise<void> = Promise.resolve();

  const notFound = (name: string): GatewayError =>
    new GatewayError("TOOL_NOT_FOUND", `no tool \`${name}\`; did you mean "echo"?`, {
      metadata: { tool: name, nearest: "echo" },
    });

  const find = (name: string) => {
    const found = tools.get(name);
    if (found === undefined) throw notFound(name);
    return found;
  };

  const registry: FakeRegistry = {
    registered,
    unregistered,
    get watches() {
      return listeners.size;
    },
    get leases() {
      return leases;
    },
    diagnosis: async () => [{ subject: "folder", status: "ok", message: "fine", mend: "" }],
    add(partial, run = echo, availability = READY) {
      const view: ToolView = { definition: toolDefinition(partial), availability };
      tools.set(partial.name, { view, run });
      registry.announce({ type: "upserted", revision: ++revision, view });
    },
    remove(name) {
      tools.delete(name);
      registry.announce({ type: "removed", revision: ++revision, name });
    },
    setAvailability(name, availability) {
      const { view, run } = find(name);
      tools.set(name, { view: { ...view, availability }, run });
      registry.announce({ type: "upserted", revision: ++revision, view: { ...view, availability } });
    },
    setProblems(next) {
      problems = next;
    },
    announce(event) {
      for (const listener of listeners) listener(event);
    },
    holdRegistrations(until) {
      held = until;
    },
    list: (principal) => ({
      revision,
      tools: [...tools.values()]
        .map(({ view }) => view)
        .toSorted((a, b) => (a.definition.name < b.definition.name ? -1 : 1)),
      problems: principal.roles.includes("operator") ? problems : [],
    }),
    get: (name) => find(name).view,
    acquire(name) {
      const { view, run } = find(name);
      if (view.availability.state === "disabled")
        throw new GatewayError("TOOL_DISABLED", `tool \`${name}\` is disabled`);
      leases++;
      return { definition: view.definition, run, [Symbol.dispose]: () => void leases-- };
    },
    async register(options, _principal, signal) {
      await held;
      signal.throwIfAborted();
      if (options.text.includes("broken")) {
        throw new GatewayError("DECLARATION_INVALID", "the declaration has 1 problem", {
          violations: [{ field: "/name", reason: "WRONG_TYPE", description: "1:7: expected a string, got a number" }],
        });
      }
      registered.push(options);
      const name = /name: (\w+)/.exec(options.text)?.[1] ?? "registered";
      if (!options.validateOnly) registry.add({ name, source: "api" });
      const view = { definition: toolDefinition({ name, source: "api" }), availability: READY };
      return { tools: [view], revision, warnings: ["short description"] };
    },
    async unregister({ name, allowMissing }) {
      if (!tools.has(name) && !allowMissing) throw notFound(name);
      unregistered.push(name);
      if (tools.has(name)) registry.remove(name);
      return revision;
    },
    async *watch(afterRevision, _principal, signal) {
      const queue: RegistryEvent[] = [];
      let wake = (): void => undefined;
      const listener = (event: RegistryEvent): void => {
        queue.push(event);
        wake();
      };
      const onAbort = (): void => wake();
      signal.addEventListener("abort", onAbort);
      listeners.add(listener);
      try {
        if (afterRevision > revision) yield { type: "reset", revision };
        if (afterRevision === 0 || afterRevision > revision) {
          for (const { view } of tools.values()) yield { type: "upserted", revision, view };
        }
        yield { type: "synced", revision };
        while (!signal.aborted) {
          const event = queue.shift();
          if (event !== undefined) yield event;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
        throw signal.reason;
      } finally {
        listeners.delete(listener);
        signal.removeEventListener("abort", onAbort);
      }
    },
    explain: (name) => ({
      definition: find(name).view.definition,
      values: [{ key: "timeout.read", value: "10s", origin: "file:echo.yaml:12" }],
      steps: ["audit", "validate-arguments", "deadline"],
    }),
    diagnose: (signal) => registry.diagnosis(signal),
  };
  return registry;
}

/** Arguments of a call as JSON text. */
export function json(value: JsonObject): string {
  return JSON.stringify(value);
}
