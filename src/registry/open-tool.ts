import type { Upstream } from "../core/adapter.ts";
import type { CallContext, ToolCall, ToolEvent } from "../core/call.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { RepeatRules, ToolLease } from "../core/registry.ts";
import type { Step } from "../core/step.ts";
import type { Availability, ToolDefinition } from "../core/tool.ts";
import type { Declaration } from "./declaration.ts";

/** A tool's path from call to shaped events. */
export interface ComposedTool {
  /** Pipeline, adapter and shaping in one. Early `return()` cancels. Throws GatewayError only. */
  run(call: ToolCall, context: CallContext): AsyncIterable<ToolEvent>;
  /** Pipeline steps in the path, outermost first. */
  readonly steps: readonly string[];
}

/** Makes the path of a tool, once per version and not before somebody needs it. */
export type ComposeTool = (declaration: Declaration, definition: ToolDefinition, upstream: Upstream) => ComposedTool;

/** What the registry knows of a pipeline's step. */
export type StandingStep = Pick<Step, "availability" | "settled">;

/** What an open tool needs from outside. */
export interface OpenToolDeps {
  readonly compose: ComposeTool;
  readonly logger: Logger;
  readonly steps: readonly StandingStep[];
  /** Called once when the upstream has been disposed. */
  onClosed(tool: OpenTool): void;
}

/**
 * One version of a tool with its upstream open. It goes on for the calls that began with it after the registry has
 * replaced it: the upstream is disposed when it is retired and its last lease is given back.
 */
export class OpenTool {
  readonly declaration: Declaration;
  /** The availability that watchers were told last. */
  told: Availability | undefined;
  readonly #upstream: Upstream;
  readonly #deps: OpenToolDeps;
  #composed: ComposedTool | undefined;
  #leases = 0;
  #retired = false;
  #closing: Promise<void> | undefined;

  constructor(declaration: Declaration, upstream: Upstream, deps: OpenToolDeps) {
    this.declaration = declaration;
    this.#upstream = upstream;
    this.#deps = deps;
  }

  get upstream(): Upstream {
    return this.#upstream;
  }

  /** Whether it serves a declaration as it is: all of a tool's, of a server's what the upstream depends on. */
  fits({ digest, server }: Declaration): boolean {
    const { server: own } = this.declaration;
    return own === undefined || server === undefined
      ? this.declaration.digest === digest
      : own.upstreamDigest === server.upstreamDigest;
  }

  /** Whether a call has a chance now: what the upstream says, else what a step of the pipeline does. */
  get availability(): Availability {
    const own = this.#upstream.availability();
    if (own.state !== "ready") return own;
    const { tool, policy } = this.declaration;
    for (const step of this.#deps.steps) {
      const standing = step.availability?.(tool.name, policy);
      if (standing !== undefined) return standing;
    }
    return own;
  }

  /**
   * The tool's path. The definition of the first use counts: later ones of the same version differ in alias, source
   * and times only.
   *
   * @throws GatewayError INTERNAL when it cannot be made.
   */
  composed(definition: ToolDefinition): ComposedTool {
    try {
      this.#composed ??= this.#deps.compose(this.declaration, definition, this.#upstream);
      return this.#composed;
    } catch (error) {
      throw GatewayError.from(error);
    }
  }

  /** Keeps this version open until the lease is disposed. */
  lease(definition: ToolDefinition): ToolLease {
    const composed = this.composed(definition);
    const hold = this.hold();
    let held = true;
    return {
      definition,
      repeat: repeatRules(this.declaration),
      run: (call, context) => {
        if (!held)
          throw new GatewayError("INTERNAL", `tool "${definition.name}" was run after its lease was given back`);
        return composed.run(call, context);
      },
      [Symbol.dispose]: () => {
        held = false;
        hold[Symbol.dispose]();
      },
    };
  }

  /** Keeps the upstream open until it is disposed, whatever serves by then. */
  hold(): Disposable {
    let held = true;
    this.#leases += 1;
    return {
      [Symbol.dispose]: () => {
        if (!held) return;
        held = false;
        this.#leases -= 1;
        if (this.#retired && this.#leases === 0) void this.close();
      },
    };
  }

  /** Another version serves from now on. */
  retire(): void {
    this.#retired = true;
    if (this.#leases === 0) void this.close();
  }

  /** Disposes the upstream at once, leases or not. Never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#dispose();
    return this.#closing;
  }

  async #dispose(): Promise<void> {
    try {
      await this.#upstream[Symbol.asyncDispose]();
    } catch (error) {
      this.#deps.logger.error("upstream-dispose-failed", { tool: this.declaration.tool.name, error });
    }
    this.#deps.onClosed(this);
  }
}

function repeatRules({ policy, stepConfigs }: Declaration): RepeatRules {
  const word = (key: string): string | undefined => {
    const value = stepConfigs.get(key);
    return typeof value === "string" ? value : undefined;
  };
  return {
    repeatable: policy.effectClass === "read" || policy.effectClass === "idempotent",
    idempotencyField: word("idempotency_field"),
    reconcile: word("reconcile"),
  };
}
