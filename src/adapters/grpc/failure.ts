import type { ToolFailure, UpstreamResult } from "../../core/call.ts";
import type { Effect } from "../../core/effect.ts";
import type { FailureReason } from "../../core/failures.ts";
import { oneLine, textBeginning } from "../../core/text.ts";
import type { CodeName, GrpcStatus } from "./status.ts";

/** Most characters of the upstream's own words. */
const MAX_WORDS = 500;

/** Codes after which the same request may work later. */
const TRANSIENT: ReadonlySet<CodeName> = new Set(["DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "UNAVAILABLE"]);

/** Codes that say that the upstream itself is at fault. */
const AT_FAULT: ReadonlySet<CodeName> = new Set([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
]);

/** Codes by which a server refuses, so that it has not acted. Source: google/rpc/code.proto. */
const REFUSALS: ReadonlySet<CodeName> = new Set([
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "UNAUTHENTICATED",
]);

/** What a status says about effects. */
export function effectOf({ name, http }: GrpcStatus, readOnly: boolean): Effect {
  if (readOnly) return "none";
  if (name === "OK") return "committed";
  // A page that says 404 or 403 comes from something that never knew the method.
  if (http !== undefined) return http >= 300 && http < 500 ? "none" : "unknown";
  return REFUSALS.has(name) ? "none" : "unknown";
}

/** The tool's failure for a status that is no success. */
export function statusFailure(tool: string, status: GrpcStatus, readOnly: boolean): UpstreamResult {
  const { name, code, details, http } = status;
  const effect = effectOf(status, readOnly);
  const transient = TRANSIENT.has(name);
  const { retryAfterMs } = details;
  const failure: ToolFailure = {
    reason: reasonOf(name),
    message: `${headline(tool, status)}${words(status)}${waitHint(retryAfterMs)}`,
    upstreamCode: http ?? code,
    // What may have been done already is not safe to do again.
    retryable: transient && effect !== "unknown",
    transient,
    ...(retryAfterMs === undefined || !transient ? {} : { retryAfterMs }),
    upstreamFault: AT_FAULT.has(name),
  };
  return { content: [], failure, upstreamCode: http ?? code, effect };
}

/** The tool's failure for an answer that cannot be read. `problem` goes on after "the upstream's answer". */
export function unreadableFailure(tool: string, problem: string, effect: Effect): UpstreamResult {
  const failure: ToolFailure = {
    reason: "UPSTREAM_BAD_RESPONSE",
    message: `${tool}: the upstream's answer ${problem}`,
    upstreamCode: undefined,
    retryable: false,
    upstreamFault: true,
  };
  return { content: [], failure, effect };
}

function reasonOf(name: CodeName): FailureReason {
  if (name === "UNAUTHENTICATED" || name === "PERMISSION_DENIED") return "UPSTREAM_UNAUTHORIZED";
  return name === "RESOURCE_EXHAUSTED" ? "UPSTREAM_RATE_LIMITED" : "UPSTREAM_STATUS";
}

function headline(tool: string, { name, code }: GrpcStatus): string {
  if (name === "UNAUTHENTICATED" || name === "PERMISSION_DENIED")
    return `${tool}: the upstream refused the gateway's credential (${name})`;
  if (name === "RESOURCE_EXHAUSTED")
    return `${tool}: the upstream asks to slow down, or has run out of something (${name})`;
  const shown = code <= 16 ? name : `status ${code}`;
  return `${tool}: the upstream answered ${shown}`;
}

function words({ message, details }: GrpcStatus): string {
  const reason = details.reason === undefined ? "" : ` [${details.reason}]`;
  const all = oneLine([message, ...details.violations].filter((text) => text.trim() !== "").join("; "));
  return `${reason}${all === "" ? "" : `: ${textBeginning(all, MAX_WORDS)}`}`;
}

function waitHint(waitMs: number | undefined): string {
  return waitMs === undefined ? "" : `; retry after ${Math.ceil(waitMs / 1_000)} s`;
}
