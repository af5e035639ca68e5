import type { Access } from "./access.ts";
import type { AttemptTimeouts } from "./adapter.ts";
import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "./call.ts";
import type { Clock } from "./clock.ts";
import type { JsonObject } from "./json.ts";
import type { Availability, ToolDefinition } from "./tool.ts";

/** Wraps a call. First in the list is outermost. */
export type Interceptor = (call: ToolCall, context: CallContext, next: Invoke) => AsyncIterable<UpstreamEvent>;

/**
 * What a second run of the same call would do. `read`: nothing, it changes nothing. `idempotent`: no more than one run.
 * `keyed`: no more than one run, since the upstream knows the call by its key. `write`: everything once more.
 */
export type EffectClass = "read" | "idempotent" | "keyed" | "write";

/** Most calls in a time: `requests` in each `perMs`, of which `burst` may come at once. */
export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
  readonly burst: number;
}

/** How calls wait for their turn where a limit of calls at a time is reached. */
export interface QueuePolicy {
  /** Most that wait for one limit; 0: nobody waits. */
  readonly maxLength: number;
  /** Longest that one call waits, for all its limits together. */
  readonly maxWaitMs: number;
}

/** A group of tools that share limits. */
export interface GroupPolicy {
  readonly name: string;
  /** Most calls of all its tools at a time; absent: no limit. */
  readonly maxParallelCalls: number | undefined;
  /** Most calls of all its tools in a time; absent: no limit. */
  readonly rateLimit: RateLimit | undefined;
}

/** When a call is tried again. */
export interface RetryPolicy {
  /** Most attempts after the first. */
  readonly maxRetries: number;
  /** How the wait grows with each retry. */
  readonly backoff: "exponential" | "linear" | "fixed";
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  /** Most retries as a share of the upstream's calls. */
  readonly budget: number;
}

/** When an attempt is begun once more because it takes long. */
export interface HedgePolicy {
  /** After so many milliseconds, or after as long as so many percent of the tool's last calls took. */
  readonly after: { readonly ms: number } | { readonly percentile: number };
  /** Most attempts besides the first. */
  readonly max: number;
}

/** When a failing upstream is left alone. */
export interface CircuitBreakerPolicy {
  /** Faults in a row after which no attempt is made for a while. */
  readonly failureThreshold: number;
  /** How long, until one attempt tries whether the upstream works again. */
  readonly resetTimeoutMs: number;
  /** Whose faults count: the tool's, or those of all tools of its upstream with these settings. */
  readonly scope: "tool" | "upstream";
}

/** Tools that something concerns: one by its name, or all of an upstream. */
export type Affected = { readonly tool: string } | { readonly upstream: string };

/** Policy of a tool after the declaration, the gateway's defaults and the built-in ones are merged. */
export interface ToolPolicy {
  /** Longest a whole call may take. */
  readonly totalMs: number;
  readonly timeouts: AttemptTimeouts;
  readonly effectClass: EffectClass;
  /** Identity of what is reached, such as `http://127.0.0.1:7434`: tools with the same one share its fate. */
  readonly upstream: string;
  readonly group: GroupPolicy | undefined;
  readonly retry: RetryPolicy;
  /** Absent: never. Has an effect for tools that only read and answer as a whole. */
  readonly hedge: HedgePolicy | undefined;
  /** Absent: none. */
  readonly circuitBreaker: CircuitBreakerPolicy | undefined;
  /** Most calls of the tool at a time; absent: no limit. */
  readonly concurrencyLimit: number | undefined;
  /** Whether the limit of calls at a time follows the upstream's latency, below `concurrencyLimit`. */
  readonly adaptiveConcurrency: boolean;
  readonly queue: QueuePolicy;
  /** Most calls of the tool in a time; absent: no limit. */
  readonly rateLimit: RateLimit | undefined;
  /** Who may see and call the tool; absent: everybody. The registry enforces it. */
  readonly access?: Access;
}

/** What a step may use. */
export interface StepDeps {
  readonly clock: Clock;
}

/** One policy of the pipeline. Disposing it, where it can be, frees all that it keeps from call to call. */
export interface Step extends Partial<Disposable> {
  /** Its name, and for a step with configuration the key of the declaration. */
  readonly name: string;
  /** `call`: once a call. `attempt`: once each attempt, inside retry. */
  readonly scope: "call" | "attempt";
  /** JSON Schema of its key; absent: the step has no key. */
  readonly configSchema?: JsonObject;
  /** Once per tool; `undefined`: not in this tool's path at all. `config` is the value of the step's key. */
  compile(tool: ToolDefinition, policy: ToolPolicy, deps: StepDeps, config: unknown): Interceptor | undefined;
  /** Why calls of a tool have less of a chance now, where the step keeps them from passing. Asked on every List. */
  availability?(tool: string, policy: ToolPolicy): Availability | undefined;
  /** Values of the moment for metrics, by name. */
  gauges?(): Readonly<Record<string, number>>;
  /** From now on a tool has this policy; `undefined`: it is gone. What is kept for another policy can be freed. */
  settled?(tool: string, policy: ToolPolicy | undefined): void;
}
