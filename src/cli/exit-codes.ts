import type { ClientReason, GatewayReason, StatusName, ToolgateError } from "../../clients/typescript/src/index.ts";

/** What the process ends with. docs/cli.md lists them; a test pins them. */
export const EXIT = {
  ok: 0,
  /** The tool ran and reported failure, or doctor found something broken. */
  failed: 1,
  /** The command line, the tool's arguments or a configuration file is wrong. */
  usage: 2,
  notFound: 3,
  /** The gateway cannot be reached, or went away before its answer was complete. */
  noGateway: 4,
  /** The gateway could not reach the upstream or lost it. */
  upstream: 5,
  deadline: 6,
  /** A secret is missing, or a credential was refused. */
  denied: 7,
  /** The gateway refused to change or run the tool as it stands: declaration, name, version, state, limits. */
  refused: 8,
  /** The tool asks for input before it can go on. */
  needsInput: 9,
  internal: 70,
  /** Ctrl-C: 128 + SIGINT. */
  interrupted: 130,
  /** SIGTERM: 128 + SIGTERM. */
  terminated: 143,
} as const;

/** A number of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const BY_REASON: Readonly<Record<GatewayReason | Exclude<ClientReason, "RPC_FAILED">, ExitCode>> = {
  TOOL_NOT_FOUND: EXIT.notFound,
  SERVICE_NOT_FOUND: EXIT.notFound,
  TOOL_DISABLED: EXIT.refused,
  TOOL_EXISTS: EXIT.refused,
  PERMISSION_DENIED: EXIT.denied,
  CREDENTIAL_MISSING: EXIT.denied,
  CREDENTIAL_INVALID: EXIT.denied,
  CREDENTIALS_THROTTLED: EXIT.denied,
  CREDENTIAL_UNCHECKED: EXIT.denied,
  CALLER_CHANGED: EXIT.refused,
  TOOL_NOT_REMOVABLE: EXIT.refused,
  ARGUMENTS_INVALID: EXIT.usage,
  ARGUMENTS_MALFORMED: EXIT.usage,
  DECLARATION_INVALID: EXIT.refused,
  REQUEST_INVALID: EXIT.usage,
  PAGE_TOKEN_INVALID: EXIT.usage,
  REQUEST_ID_REUSED: EXIT.usage,
  REQUEST_TOO_LARGE: EXIT.usage,
  ETAG_MISMATCH: EXIT.refused,
  CONTRACT_CHANGED: EXIT.refused,
  NOT_SUPPORTED_YET: EXIT.usage,
  SECRET_MISSING: EXIT.denied,
  TEMPLATE_VALUE_REFUSED: EXIT.usage,
  CALL_CANCELLED: EXIT.interrupted,
  CALL_DEADLINE_EXCEEDED: EXIT.deadline,
  UPSTREAM_TIMEOUT: EXIT.upstream,
  UPSTREAM_UNREACHABLE: EXIT.upstream,
  UPSTREAM_ANSWER_LOST: EXIT.upstream,
  UPSTREAM_POOL_EXHAUSTED: EXIT.upstream,
  RESULT_TOO_LARGE: EXIT.upstream,
  RESULT_NOT_FOUND: EXIT.notFound,
  RESULT_GONE: EXIT.notFound,
  RESULT_QUERY_INVALID: EXIT.usage,
  CONCURRENCY_LIMIT_REACHED: EXIT.refused,
  CIRCUIT_OPEN: EXIT.upstream,
  RATE_LIMITED: EXIT.refused,
  GATEWAY_STOPPING: EXIT.noGateway,
  WATCH_STALLED: EXIT.noGateway,
  OUTCOME_UNKNOWN: EXIT.upstream,
  CALL_ALREADY_MADE: EXIT.refused,
  LEDGER_UNAVAILABLE: EXIT.internal,
  LEDGER_FULL: EXIT.refused,
  CALL_NOT_FOUND: EXIT.notFound,
  RESUME_EXPIRED: EXIT.notFound,
  CONTINUATION_NOT_FOUND: EXIT.notFound,
  STORE_FAILED: EXIT.internal,
  REGISTRY_FULL: EXIT.refused,
  INTERNAL: EXIT.internal,
  GATEWAY_UNREACHABLE: EXIT.noGateway,
  GATEWAY_CONNECTION_LOST: EXIT.noGateway,
  STREAM_INCOMPLETE: EXIT.noGateway,
  STREAM_BROKEN: EXIT.noGateway,
};

/** For an error without a known reason: a newer gateway's, or a proxy's. */
const BY_STATUS: Readonly<Partial<Record<StatusName, ExitCode>>> = {
  CANCELLED: EXIT.interrupted,
  INVALID_ARGUMENT: EXIT.usage,
  DEADLINE_EXCEEDED: EXIT.deadline,
  NOT_FOUND: EXIT.notFound,
  ALREADY_EXISTS: EXIT.refused,
  FAILED_PRECONDITION: EXIT.refused,
  ABORTED: EXIT.refused,
  PERMISSION_DENIED: EXIT.denied,
  UNAUTHENTICATED: EXIT.denied,
  UNAVAILABLE: EXIT.noGateway,
  UNIMPLEMENTED: EXIT.noGateway,
};

/** The code for an error of the client. */
export function exitCodeOf(error: ToolgateError): ExitCode {
  const byReason: Readonly<Record<string, ExitCode>> = BY_REASON;
  const known = Object.hasOwn(byReason, error.reason) ? byReason[error.reason] : undefined;
  return known ?? BY_STATUS[error.status] ?? EXIT.internal;
}

/** The code for a failure that the tool reported. */
export function exitCodeOfFailure(reason: string): ExitCode {
  return reason === "UPSTREAM_UNAUTHORIZED" ? EXIT.denied : EXIT.failed;
}
