import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../core/call.ts";
import { cutError } from "../core/cut-error.ts";
import { GatewayError } from "../core/errors.ts";
import type { Interceptor, Step, StepDeps, ToolPolicy } from "../core/step.ts";
import type { ToolDefinition } from "../core/tool.ts";

/** What a tool's pipeline is made of. */
export interface PipelineParts {
  /** Outermost first; those of scope `attempt` after all of scope `call`. */
  readonly steps: readonly Step[];
  readonly tool: ToolDefinition;
  readonly policy: ToolPolicy;
  /** Values of the declaration's keys that belong to steps, by step name. */
  readonly stepConfigs: ReadonlyMap<string, unknown>;
  readonly deps: StepDeps;
}

/** The steps of one tool, compiled. */
export interface Pipeline {
  /** Steps in the path, outermost first. */
  readonly names: readonly string[];
  /**
   * Puts the steps around an adapter. The outcome throws GatewayError only; it gives exactly one result, and that as its
   * last event, or INTERNAL where the adapter does not. A result is let go when the adapter has ended.
   */
  wrap(invoke: Invoke): Invoke;
}

/**
 * Compiles the steps for a tool, once: a step that has nothing to do for it is not in the path and costs nothing.
 * What stands inside the last step of scope `call` is run once for each attempt.
 *
 * @throws GatewayError INTERNAL when a step of scope `call` stands inside one of scope `attempt`.
 */
export function composePipeline(parts: PipelineParts): Pipeline {
  const { steps, tool, policy, deps, stepConfigs } = parts;
  refuseMixedScopes(steps);
  const layers = steps.flatMap((step) => {
    const intercept = step.compile(tool, policy, deps, stepConfigs.get(step.name));
    return intercept === undefined ? [] : [{ name: step.name, intercept }];
  });
  return {
    names: layers.map((layer) => layer.name),
    wrap: (invoke) => layers.reduceRight((next, { intercept }) => around(intercept, next), oneResult(tool, invoke)),
  };
}

function around(intercept: Interceptor, next: Invoke): Invoke {
  return (call, context) => intercept(call, context, next);
}

function refuseMixedScopes(steps: readonly Step[]): void {
  const firstAttempt = steps.findIndex((step) => step.scope === "attempt");
  const late = firstAttempt < 0 ? undefined : steps.slice(firstAttempt).find((step) => step.scope === "call");
  if (late === undefined) return;
  throw new GatewayError(
    "INTERNAL",
    `step "${late.name}" runs once a call, so it must stand before the steps of attempts`,
  );
}

/** Holds an adapter to its promise: any number of other events, then one result; errors are GatewayErrors. */
function oneResult(tool: ToolDefinition, invoke: Invoke): Invoke {
  return async function* (call: ToolCall, context: CallContext): AsyncGenerator<UpstreamEvent, void, undefined> {
    let result: UpstreamEvent | undefined;
    try {
      for await (const event of invoke(call, context)) {
        if (result !== undefined) throw adapterFault(tool, `gave "${event.type}" after its result`);
        if (event.type === "upstream-result") result = event;
        else yield event;
      }
    } catch (error) {
      throw asGatewayError(tool, context.signal, error);
    }
    if (result === undefined) throw asGatewayError(tool, context.signal, adapterFault(tool, "ended without a result"));
    yield result;
  };
}

/** An adapter that fails in a way of its own after the signal aborted most likely failed because of it. */
function asGatewayError(tool: ToolDefinition, signal: AbortSignal, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (signal.aborted) return cutError(tool, signal);
  return new GatewayError("INTERNAL", `tool "${tool.name}": internal error`, {
    effect: tool.hints.readOnly === true ? "none" : "unknown",
    metadata: { tool: tool.name },
    cause: error,
  });
}

function adapterFault(tool: ToolDefinition, what: string): Error {
  return new Error(`the adapter of tool "${tool.name}" ${what}`);
}
