import type { CallContext, Invoke, ToolCall, ToolEvent, UpstreamEvent } from "./call.ts";
import type { Effect } from "./effect.ts";
import type { JsonObject } from "./json.ts";
import type { ToolDefinition } from "./tool.ts";

/** A call that did not take its tool's path: it was refused before, or its outcome is that of another. */
export interface ShortCall {
  /** As the caller wrote it, where it is nobody's name. */
  readonly tool: string;
  /** `undefined`: the call was refused before it had one. */
  readonly callId: string | undefined;
  readonly principal: string;
  readonly sessionId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly taskId?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly arguments: JsonObject | undefined;
  readonly ms: number;
  readonly outcome: "ok" | "failure" | "needs-input" | "error" | "left";
  /** Of the error or the failure. */
  readonly reason?: string;
  /** Of the RPC; absent: `OK`. */
  readonly status?: string;
  readonly effect?: Effect;
  /** The call whose outcome this one got, while that ran. */
  readonly joined?: string | undefined;
  /** The outcome is that of an earlier call. */
  readonly replayed?: boolean;
}

/** The path of a tool, from call to shaped events. */
export type ToolPath = (call: ToolCall, context: CallContext) => AsyncIterable<ToolEvent>;

/** Watches calls, for records, metrics and traces. What it is told never fails. */
export interface CallWatch {
  /** Runs a call, watched. */
  run(tool: ToolDefinition, path: ToolPath, call: ToolCall, context: CallContext): AsyncIterable<ToolEvent>;
  /** Hears of a call that nothing was run for. */
  short(call: ShortCall): void;
}

/** What somebody did, or was kept from doing, that a reviewer asks for later. */
export interface AuditEntry {
  /** Noun-verb, such as `tool-register`. */
  readonly action: string;
  readonly outcome: "done" | "refused" | "failed";
  /** Who: id of the principal, the peer's address, or `os:` and the user of the machine. */
  readonly actor: string;
  /** Plain data; no secret stands in it. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** Takes what stands in the audit log. Never throws, and never waits. */
export interface AuditTrail {
  note(entry: AuditEntry): void;
}

/** Watches attempts: each runs once through everything that an attempt waits for, and its upstream. */
export interface AttemptWatch {
  attempt(tool: ToolDefinition, next: Invoke, call: ToolCall, context: CallContext): AsyncIterable<UpstreamEvent>;
}
