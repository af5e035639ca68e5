import type { CallContext, ToolCall, ToolEvent } from "./call.ts";
import type { Principal } from "./principal.ts";
import type { Availability, ToolDefinition } from "./tool.ts";

/** Why a declaration is not, or not wholly, in force. */
export interface DeclarationProblem {
  /** `file:weather.yaml` (path relative to the watched folder, `/` between its parts) or `api:NAME`. */
  readonly source: string;
  /** 1-based; 0 if unknown. */
  readonly line: number;
  /** 1-based; 0 if unknown. */
  readonly column: number;
  /** One line: what is wrong, what was got, what is allowed, the nearest fitting word. */
  readonly message: string;
  readonly lastGoodServing: boolean;
  /** A note breaks nothing: a file the include rule leaves out, a lint finding. */
  readonly note: boolean;
}

/** A tool as it stands now. */
export interface ToolView {
  readonly definition: ToolDefinition;
  readonly availability: Availability;
}

/** All tools a principal may see, at one moment. */
export interface ToolListing {
  /** Grows with each change and from run to run, so that an old one is never taken for a new one. */
  readonly revision: number;
  /** In code-unit order of name. */
  readonly tools: readonly ToolView[];
  /** Empty for a principal without the operator's role. */
  readonly problems: readonly DeclarationProblem[];
}

/** One event of a watch. */
export type RegistryEvent =
  | { readonly type: "upserted"; readonly revision: number; readonly view: ToolView }
  | { readonly type: "removed"; readonly revision: number; readonly name: string }
  | {
      readonly type: "problems";
      readonly revision: number;
      readonly source: string;
      readonly problems: readonly DeclarationProblem[];
    }
  | { readonly type: "synced"; readonly revision: number }
  | { readonly type: "reset"; readonly revision: number };

/** What a tool's declaration says of calls that are made more than once. */
export interface RepeatRules {
  /** Whether a call whose outcome was lost may run again, since twice equals once. */
  readonly repeatable: boolean;
  /** Parameter that takes the call's key. */
  readonly idempotencyField: string | undefined;
  /** Tool that knows what became of a call. */
  readonly reconcile: string | undefined;
}

/** The right to run one version of a tool. A call in flight keeps the version it began with until it is disposed. */
export interface ToolLease extends Disposable {
  readonly definition: ToolDefinition;
  /** Absent: a call is never repeated, and nobody knows what became of it. */
  readonly repeat?: RepeatRules;
  /** Pipeline, adapter and shaping in one. Early `return()` cancels. Throws GatewayError only. */
  run(call: ToolCall, context: CallContext): AsyncIterable<ToolEvent>;
}

/** A registration over the wire. */
export interface RegisterOptions {
  readonly text: string;
  readonly format: "yaml" | "json";
  readonly validateOnly: boolean;
  /** Replace only this version. */
  readonly etag: string | undefined;
  readonly mustNotExist: boolean;
  readonly leaseMs: number | undefined;
}

/** What a registration made. */
export interface RegisterOutcome {
  readonly tools: readonly ToolView[];
  readonly revision: number;
  readonly warnings: readonly string[];
}

/** The policy in force for a tool, or for the server of that name. */
export interface ToolExplanation {
  readonly definition: ToolDefinition;
  readonly values: readonly { readonly key: string; readonly value: string; readonly origin: string }[];
  /** Pipeline steps in this tool's path, outermost first. */
  readonly steps: readonly string[];
}

/** One finding of an examination. */
export interface CheckResult {
  readonly subject: string;
  readonly status: "ok" | "warning" | "failed";
  readonly message: string;
  /** What to do; empty when ok. */
  readonly mend: string;
}

/** The tools of the gateway: what the service layer sees of the registry. */
export interface ToolRegistry {
  /** What the principal may see. */
  list(principal: Principal): ToolListing;
  /** @throws GatewayError TOOL_NOT_FOUND with the nearest visible names. `name` may be an alias. */
  get(name: string, principal: Principal): ToolView;
  /** @throws GatewayError TOOL_NOT_FOUND, TOOL_DISABLED. `name` may be an alias. */
  acquire(name: string, principal: Principal): ToolLease;
  /** @throws GatewayError DECLARATION_INVALID, TOOL_EXISTS, ETAG_MISMATCH, STORE_FAILED. */
  register(options: RegisterOptions, principal: Principal, signal: AbortSignal): Promise<RegisterOutcome>;
  /** The revision after it. @throws GatewayError TOOL_NOT_FOUND, TOOL_NOT_REMOVABLE, ETAG_MISMATCH, STORE_FAILED. */
  unregister(
    options: { readonly name: string; readonly etag: string | undefined; readonly allowMissing: boolean },
    principal: Principal,
    signal: AbortSignal,
  ): Promise<number>;
  /**
   * Changes after a revision; 0: the present tools first. Ends when the signal aborts. Holds no queue of its own for a
   * slow reader: one that falls behind the bounded log of changes gets `reset` and the whole list.
   */
  watch(afterRevision: number, principal: Principal, signal: AbortSignal): AsyncIterable<RegistryEvent>;
  /** @throws GatewayError TOOL_NOT_FOUND. */
  explain(name: string, principal: Principal): ToolExplanation;
  /** Folder, problems, secrets and upstreams; each upstream is reached once. */
  diagnose(signal: AbortSignal): Promise<readonly CheckResult[]>;
}
