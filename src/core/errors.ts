import type { Effect } from "./effect.ts";

/** gRPC status names the gateway uses. Source: https://grpc.io/docs/guides/status-codes/. */
export type StatusName =
  | "CANCELLED"
  | "UNKNOWN"
  | "INVALID_ARGUMENT"
  | "DEADLINE_EXCEEDED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "OUT_OF_RANGE"
  | "UNIMPLEMENTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "DATA_LOSS"
  | "UNAUTHENTICATED";

interface ErrorEntry {
  /** Status on the wire. */
  readonly status: StatusName;
  /** Whether the same call may work later without a change by the caller. */
  readonly retryable: boolean;
  /** When it happens. */
  readonly meaning: string;
  /** What to do about it. */
  readonly mend: string;
}

/**
 * Every reason the gateway gives for an RPC error: one reason, one status. docs/errors.md is generated from this
 * table; a reason once published keeps its meaning.
 */
export const ERROR_CATALOGUE = {
  TOOL_NOT_FOUND: {
    status: "NOT_FOUND",
    retryable: false,
    meaning: "No tool of this name is visible to the caller. The nearest visible names stand in the metadata.",
    mend: "Use a name from List.",
  },
  SERVICE_NOT_FOUND: {
    status: "NOT_FOUND",
    retryable: false,
    meaning: "The health of a service was asked for that this gateway does not serve.",
    mend: "Ask for the empty name (the whole gateway) or for a service that the health service's List names.",
  },
  TOOL_DISABLED: {
    status: "FAILED_PRECONDITION",
    retryable: false,
    meaning: "The tool's declaration says `enabled: false`.",
    mend: "Set `enabled: true` in its declaration.",
  },
  TOOL_EXISTS: {
    status: "ALREADY_EXISTS",
    retryable: false,
    meaning: "The name is taken, by a tool that must not be replaced or by a tool of another source.",
    mend: "Choose another name, or change the tool where it was declared.",
  },
  PERMISSION_DENIED: {
    status: "PERMISSION_DENIED",
    retryable: false,
    meaning: "The caller lacks the role the operation needs, which the text names.",
    mend: "Call as a principal that has the role.",
  },
  CREDENTIAL_MISSING: {
    status: "UNAUTHENTICATED",
    retryable: false,
    meaning: "The gateway takes identified callers only, and the call shows no credential.",
    mend: "Send an API key, a token or a client certificate, as the text says.",
  },
  CREDENTIAL_INVALID: {
    status: "UNAUTHENTICATED",
    retryable: false,
    meaning: "The credential is unknown, wrong, expired or revoked; which of them only the gateway's log says.",
    mend: "Send one that is valid. `authentication-failed` in the log has the cause.",
  },
  CREDENTIALS_THROTTLED: {
    status: "RESOURCE_EXHAUSTED",
    retryable: true,
    meaning:
      "Too many calls from this address showed a credential that is not valid, so another one is not looked at for a moment. Credentials that were good before are not concerned.",
    mend: "Call again after the time in RetryInfo, and find who sends the wrong ones: the log has `authentication-failed`.",
  },
  CREDENTIAL_UNCHECKED: {
    status: "UNAVAILABLE",
    retryable: true,
    meaning: "The token cannot be checked, since the keys of its issuer cannot be had.",
    mend: "Call again later, and see whether the gateway reaches `jwks_url`; its log has `jwks-unreachable`.",
  },
  CALLER_CHANGED: {
    status: "ABORTED",
    retryable: true,
    meaning: "The roles of a caller are others than when its Watch began.",
    mend: "Watch again: the tools are told anew.",
  },
  TOOL_NOT_REMOVABLE: {
    status: "FAILED_PRECONDITION",
    retryable: false,
    meaning: "The tool comes from a file of the watched folder, so the service cannot remove it.",
    mend: "Remove the file.",
  },
  ARGUMENTS_INVALID: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning: "The arguments do not fit the tool's input schema. BadRequest names each place by JSON pointer.",
    mend: "Correct the arguments named. The upstream was not reached.",
  },
  ARGUMENTS_MALFORMED: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning:
      "The arguments are not a JSON object, nested too deep, or have a name twice. BadRequest has the place by JSON pointer.",
    mend: "Send one JSON object. The upstream was not reached.",
  },
  DECLARATION_INVALID: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning: "The declaration is refused. BadRequest lists each problem with line and column.",
    mend: "Correct the places named; nothing was changed.",
  },
  REQUEST_INVALID: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning: "A field of the request has a value the service does not take.",
    mend: "Correct the field named in BadRequest.",
  },
  PAGE_TOKEN_INVALID: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning: "The page token is not one this gateway gave for this caller and this filter.",
    mend: "List again from the first page.",
  },
  REQUEST_ID_REUSED: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning: "The request_id was used for another request before.",
    mend: "Use a new request_id for each distinct request.",
  },
  REQUEST_TOO_LARGE: {
    status: "RESOURCE_EXHAUSTED",
    retryable: false,
    meaning: "A message is larger than the gateway's limit, which the text names.",
    mend: "Send less, or raise `limits.request_bytes` in gateway.yaml.",
  },
  ETAG_MISMATCH: {
    status: "ABORTED",
    retryable: false,
    meaning: "The tool changed since the etag was read.",
    mend: "Get the tool again and repeat with its etag.",
  },
  CONTRACT_CHANGED: {
    status: "FAILED_PRECONDITION",
    retryable: false,
    meaning: "The tool's contract digest is not the one the caller pinned.",
    mend: "Read the tool's new definition before calling it.",
  },
  NOT_SUPPORTED_YET: {
    status: "UNIMPLEMENTED",
    retryable: false,
    meaning: "The field or key named is known, but this version of the gateway has no effect for it.",
    mend: "Leave the field out.",
  },
  SECRET_MISSING: {
    status: "FAILED_PRECONDITION",
    retryable: false,
    meaning:
      "A secret the tool needs is not set or empty, or nobody is logged in at its server. The text names the reference or the login, never a value.",
    mend: "Set the environment variable named and start the gateway with it; where a login is named, run it.",
  },
  TEMPLATE_VALUE_REFUSED: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning: "An argument cannot stand where the tool's template puts it, such as `..` as a path segment.",
    mend: "Send another value for the parameter named. The upstream was not reached.",
  },
  CALL_CANCELLED: {
    status: "CANCELLED",
    retryable: false,
    meaning: "The caller cancelled the call or went away.",
    mend: "None.",
  },
  CALL_DEADLINE_EXCEEDED: {
    status: "DEADLINE_EXCEEDED",
    retryable: true,
    meaning:
      "The whole call took longer than its deadline: the soonest of the caller's, the tool's and the gateway's. The metadata says whose it was (`limit`), and where known what the call was at (`phase`): `queue`, `connect`, `read` or `idle`.",
    mend: "Give the call more time, or raise `timeout.total` of the tool.",
  },
  UPSTREAM_TIMEOUT: {
    status: "DEADLINE_EXCEEDED",
    retryable: true,
    meaning: "The upstream was too slow; the metadata says which limit was spent: connect, read or idle.",
    mend: "Look at the upstream, or raise that limit under `timeout` of the tool.",
  },
  UPSTREAM_UNREACHABLE: {
    status: "UNAVAILABLE",
    retryable: true,
    meaning: "No connection to the upstream, or the connection was lost on a call that changes nothing.",
    mend: "Check that the upstream runs and that the gateway can reach its address.",
  },
  UPSTREAM_ANSWER_LOST: {
    status: "UNKNOWN",
    retryable: false,
    meaning: "The request was sent and the answer was lost or cut short: the upstream may have acted.",
    mend: "Find out whether the call took effect before calling again.",
  },
  UPSTREAM_POOL_EXHAUSTED: {
    status: "RESOURCE_EXHAUSTED",
    retryable: true,
    meaning: "All connections to the upstream are in use, and the call could not wait, or not as long, for one.",
    mend: "Call again later, or raise `pool` of the tool, or `defaults.pool` in gateway.yaml.",
  },
  RESULT_TOO_LARGE: {
    status: "RESOURCE_EXHAUSTED",
    retryable: false,
    meaning: "The upstream's answer is larger than the gateway's limit, which the text names.",
    mend: "Ask the upstream for less, or raise `limits.response_bytes` in gateway.yaml.",
  },
  RESULT_NOT_FOUND: {
    status: "NOT_FOUND",
    retryable: false,
    meaning: "No result is kept under this handle for this caller: it never was, or it is another caller's.",
    mend: "Use a handle as it came in a result of yours, as the same caller.",
  },
  RESULT_GONE: {
    status: "NOT_FOUND",
    retryable: false,
    meaning: "The result was kept, and is no longer: its time is over, newer ones took its room, or it cannot be read.",
    mend: "Call the tool that the text names again; raise `results.ttl` or `results.principal_bytes` in gateway.yaml.",
  },
  RESULT_QUERY_INVALID: {
    status: "INVALID_ARGUMENT",
    retryable: false,
    meaning:
      "What is asked of a kept result does not fit it, such as a path that leads nowhere or rows of a plain text.",
    mend: "Correct the field that the text names.",
  },
  CONCURRENCY_LIMIT_REACHED: {
    status: "RESOURCE_EXHAUSTED",
    retryable: true,
    meaning:
      "As many calls of the tool or its group run as its limit allows, and the line of those that wait is full, or the call's turn did not come in time; the metadata has `setting` (`queue.max_length` or `queue.max_wait`), `of` and `position`.",
    mend: "Call again after the time in RetryInfo, or raise `concurrency_limit` of the tool, `max_parallel_calls` of the group, or `queue`.",
  },
  RATE_LIMITED: {
    status: "RESOURCE_EXHAUSTED",
    retryable: true,
    meaning: "The tool, its group or the caller has had as many calls as it may in a time; the metadata says of what.",
    mend: "Call again after the time in RetryInfo, or raise the `rate_limit` that the text names.",
  },
  CIRCUIT_OPEN: {
    status: "UNAVAILABLE",
    retryable: true,
    meaning:
      "The upstream failed so many times in a row that it is left alone for a while. The text says what it did last and when it is tried again.",
    mend: "Call again after the time in RetryInfo, and look at the upstream. The upstream was not reached.",
  },
  GATEWAY_STOPPING: {
    status: "UNAVAILABLE",
    retryable: true,
    meaning: "The gateway is shutting down.",
    mend: "Call another instance, or call again after the restart.",
  },
  WATCH_STALLED: {
    status: "RESOURCE_EXHAUSTED",
    retryable: true,
    meaning: "A Watch had something to tell, and its reader took nothing for five minutes.",
    mend: "Watch again after the last revision you have, and read what comes.",
  },
  OUTCOME_UNKNOWN: {
    status: "UNKNOWN",
    retryable: false,
    meaning:
      "A call with this `request_id` was made before and was interrupted after it was sent: whether it took effect is not known. It is not run again.",
    mend: "Find out whether it took effect, then call with a new `request_id` if it did not. `reconcile` of the tool does the finding out.",
  },
  CALL_ALREADY_MADE: {
    status: "ALREADY_EXISTS",
    retryable: false,
    meaning: "A call with this `request_id` was made and answered before; the answer itself is no longer kept.",
    mend: "Ask the upstream for the result, or raise `ledger.max_bytes` in gateway.yaml.",
  },
  LEDGER_UNAVAILABLE: {
    status: "UNAVAILABLE",
    retryable: true,
    meaning: "The record of calls cannot be read or written, so a call with a `request_id` was not made.",
    mend: "Check space and permissions of the state folder, and that no other gateway uses it.",
  },
  LEDGER_FULL: {
    status: "RESOURCE_EXHAUSTED",
    retryable: true,
    meaning: "As many calls with a `request_id` are on record as the gateway keeps, so this one was not made.",
    mend: "Raise `ledger.max_entries`, or lower `ledger.retention`, in gateway.yaml.",
  },
  CALL_NOT_FOUND: {
    status: "NOT_FOUND",
    retryable: false,
    meaning: "No streamed call of this id that can be resumed is known for this caller.",
    mend: "Resume with the call id of `started`, as the same caller, where `started` said that it can be resumed.",
  },
  RESUME_EXPIRED: {
    status: "OUT_OF_RANGE",
    retryable: false,
    meaning: "The call was kept for a lost stream, but its time is over or what comes next is no longer kept.",
    mend: "Call again with the same `request_id`, which gives the outcome; resume sooner, or raise `resume` in gateway.yaml.",
  },
  CONTINUATION_NOT_FOUND: {
    status: "NOT_FOUND",
    retryable: false,
    meaning:
      "The state of the continuation is none that this gateway gave to this caller for this tool, or it was answered already, is being answered, or its time is over.",
    mend: "Send the state as it came, once, in time, as the same caller; or call the tool from the beginning.",
  },
  STORE_FAILED: {
    status: "UNAVAILABLE",
    retryable: true,
    meaning: "The registration could not be written to disk, so it was not made.",
    mend: "Check space and permissions of the state folder.",
  },
  REGISTRY_FULL: {
    status: "RESOURCE_EXHAUSTED",
    retryable: false,
    meaning: "As many tools are registered over the wire as the gateway keeps; the text names the limit.",
    mend: "Unregister tools that are no longer needed, or register them with a lease.",
  },
  INTERNAL: {
    status: "INTERNAL",
    retryable: false,
    meaning: "A fault of the gateway itself. The log holds the cause under the call id.",
    mend: "Report it with the log line.",
  },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

/** Stable word for why an RPC failed. */
export type ErrorReason = keyof typeof ERROR_CATALOGUE;

/** One wrong place in a request. */
export interface FieldViolation {
  /** JSON pointer into the arguments, or a field path of the request; empty: the whole. */
  readonly field: string;
  /** What was expected and what was got, in one line. */
  readonly description: string;
  /** UPPER_SNAKE word that tells kinds of mistakes apart, such as `WRONG_TYPE` or `MISSING`. */
  readonly reason: string;
}

/** What a GatewayError carries besides its text. */
export interface GatewayErrorOptions {
  /** What a model may read; the message when absent. */
  readonly modelMessage?: string;
  /** Whether anything may have happened. Default `none`. */
  readonly effect?: Effect;
  /** Overrides the catalogue. */
  readonly retryable?: boolean;
  /** When a retry makes sense, in milliseconds from now. */
  readonly retryAfterMs?: number;
  /** Wrong places, for google.rpc.BadRequest. */
  readonly violations?: readonly FieldViolation[];
  /** What varies in the message, for google.rpc.ErrorInfo. Values are short and hold no secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The error below, for the log only; its text never reaches a client. */
  readonly cause?: unknown;
}

/** The only error that crosses a module edge. */
export class GatewayError extends Error {
  readonly reason: ErrorReason;
  readonly status: StatusName;
  readonly modelMessage: string;
  readonly effect: Effect;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly violations: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;

  constructor(reason: ErrorReason, message: string, options: GatewayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "GatewayError";
    const entry = ERROR_CATALOGUE[reason];
    this.reason = reason;
    this.status = entry.status;
    this.modelMessage = options.modelMessage ?? message;
    this.effect = options.effect ?? "none";
    this.retryable = options.retryable ?? entry.retryable;
    this.retryAfterMs = options.retryAfterMs;
    this.violations = options.violations ?? [];
    this.metadata = options.metadata ?? {};
  }

  /** The error itself, or INTERNAL around anything that is not a GatewayError. */
  static from(error: unknown): GatewayError {
    return error instanceof GatewayError ? error : new GatewayError("INTERNAL", "internal error", { cause: error });
  }
}
