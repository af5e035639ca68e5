import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.ts";
import { Effect, ToolErrorDetailSchema } from "./gen/toolgate/v1/errors_pb.ts";
import { isRefusedStream } from "./refused-stream.ts";
import { tlsProblem } from "./tls-problem.ts";

/** Why the gateway refused or failed a request. The gateway's docs/errors.md says when each happens and what to do. */
export type GatewayReason =
  | "TOOL_NOT_FOUND"
  | "SERVICE_NOT_FOUND"
  | "TOOL_DISABLED"
  | "TOOL_EXISTS"
  | "PERMISSION_DENIED"
  | "CREDENTIAL_MISSING"
  | "CREDENTIAL_INVALID"
  | "CREDENTIALS_THROTTLED"
  | "CREDENTIAL_UNCHECKED"
  | "CALLER_CHANGED"
  | "TOOL_NOT_REMOVABLE"
  | "ARGUMENTS_INVALID"
  | "ARGUMENTS_MALFORMED"
  | "DECLARATION_INVALID"
  | "REQUEST_INVALID"
  | "PAGE_TOKEN_INVALID"
  | "REQUEST_ID_REUSED"
  | "REQUEST_TOO_LARGE"
  | "ETAG_MISMATCH"
  | "CONTRACT_CHANGED"
  | "NOT_SUPPORTED_YET"
  | "SECRET_MISSING"
  | "TEMPLATE_VALUE_REFUSED"
  | "CALL_CANCELLED"
  | "CALL_DEADLINE_EXCEEDED"
  | "UPSTREAM_TIMEOUT"
  | "UPSTREAM_UNREACHABLE"
  | "UPSTREAM_ANSWER_LOST"
  | "UPSTREAM_POOL_EXHAUSTED"
  | "RESULT_TOO_LARGE"
  | "RESULT_NOT_FOUND"
  | "RESULT_GONE"
  | "RESULT_QUERY_INVALID"
  | "CONCURRENCY_LIMIT_REACHED"
  | "CIRCUIT_OPEN"
  | "RATE_LIMITED"
  | "GATEWAY_STOPPING"
  | "WATCH_STALLED"
  | "OUTCOME_UNKNOWN"
  | "CALL_ALREADY_MADE"
  | "LEDGER_UNAVAILABLE"
  | "LEDGER_FULL"
  | "CALL_NOT_FOUND"
  | "RESUME_EXPIRED"
  | "CONTINUATION_NOT_FOUND"
  | "STORE_FAILED"
  | "REGISTRY_FULL"
  | "INTERNAL";

/**
 * Why this client failed a request by itself.
 * - GATEWAY_UNREACHABLE: no connection, so the gateway never saw the request. Where it is for TLS, `metadata.tls` says
 *   why: CERTIFICATE_UNTRUSTED, CERTIFICATE_NAME, CERTIFICATE_DATES, TLS_EXPECTED, PLAINTEXT_EXPECTED or TLS_HANDSHAKE.
 * - GATEWAY_CONNECTION_LOST: no complete answer came: the connection broke, or what answers there is no gateway.
 * - STREAM_INCOMPLETE: a stream ended without `completed`.
 * - STREAM_BROKEN: a stream left a message out, or went on after `completed`.
 * - RPC_FAILED: an error without the gateway's details, such as a proxy on the way gives.
 */
export type ClientReason =
  | "GATEWAY_UNREACHABLE"
  | "GATEWAY_CONNECTION_LOST"
  | "STREAM_INCOMPLETE"
  | "STREAM_BROKEN"
  | "RPC_FAILED";

/** A stable word. A newer gateway may send one that this version does not know. */
export type ToolgateReason = GatewayReason | ClientReason | (string & Record<never, never>);

/** gRPC status. Source: https://grpc.io/docs/guides/status-codes/. */
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

/** What a call changed: surely nothing, confirmed by the upstream, or unknown because the answer was lost. */
export type EffectName = "none" | "committed" | "unknown";

/** One wrong place in a request. */
export interface Violation {
  /** JSON pointer into the arguments, or a field path of the request; empty: the whole. */
  readonly field: string;
  /** What was expected and what was got. */
  readonly description: string;
  /** UPPER_SNAKE word that tells kinds of mistakes apart, such as `WRONG_TYPE`; may be empty. */
  readonly reason: string;
}

/** What a {@link ToolgateError} carries besides reason, status and text. */
export interface ToolgateErrorDetails {
  readonly modelMessage?: string;
  readonly retryable?: boolean;
  readonly effect?: EffectName;
  readonly retryAfterMs?: number | undefined;
  readonly violations?: readonly Violation[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly callId?: string | undefined;
  readonly cause?: unknown;
}

/** Every error this client throws. A tool that ran and said no is not one: that is `outcome.failure`. */
export class ToolgateError extends Error {
  /** Stable word to branch on. */
  readonly reason: ToolgateReason;
  readonly status: StatusName;
  /** What a model can be told. */
  readonly modelMessage: string;
  /** Whether the same call may work later without a change. */
  readonly retryable: boolean;
  /** Whether anything may have happened. Repeat a call with `unknown` only where the tool is idempotent. */
  readonly effect: EffectName;
  /** When a retry makes sense, from now. */
  readonly retryAfterMs: number | undefined;
  /** Wrong places in the request. */
  readonly violations: readonly Violation[];
  /** What varies in the message, such as the nearest tool names. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The gateway's id of the call, if it was accepted: its log has the line. */
  readonly callId: string | undefined;

  constructor(reason: ToolgateReason, status: StatusName, message: string, details: ToolgateErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "ToolgateError";
    this.reason = reason;
    this.status = status;
    this.modelMessage = details.modelMessage ?? message;
    this.retryable = details.retryable ?? false;
    this.effect = details.effect ?? "none";
    this.retryAfterMs = details.retryAfterMs;
    this.violations = details.violations ?? [];
    this.metadata = details.metadata ?? {};
    this.callId = details.callId;
  }
}

/** What is known of a request whose answer never came. */
export interface RequestFacts {
  /** Effect to assume when the answer is lost: `unknown` for what may change something. */
  readonly effectIfLost: EffectName;
  /** The caller's own signal. */
  readonly signal?: AbortSignal | undefined;
  /** Id of the call, once `started` told it. */
  readonly callId?: string | undefined;
}

/** Turns what a transport throws into a ToolgateError. */
export function toToolgateError(error: unknown, facts: RequestFacts): ToolgateError {
  const own = causeChain(error).find((cause) => cause instanceof ToolgateError);
  if (own !== undefined) return own;
  const rpc = ConnectError.from(error);
  return fromGateway(rpc, facts) ?? fromTransport(rpc, facts);
}

/** Name of a status. */
export function statusName(code: Code): StatusName {
  return STATUS_NAMES[code] ?? "UNKNOWN";
}

/** Name of an effect on the wire; not said counts as unknown. */
export function effectName(effect: Effect | undefined): EffectName {
  if (effect === Effect.NONE) return "none";
  return effect === Effect.COMMITTED ? "committed" : "unknown";
}

const STATUS_NAMES: Readonly<Partial<Record<Code, StatusName>>> = {
  [Code.Canceled]: "CANCELLED",
  [Code.Unknown]: "UNKNOWN",
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.NotFound]: "NOT_FOUND",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.Aborted]: "ABORTED",
  [Code.OutOfRange]: "OUT_OF_RANGE",
  [Code.Unimplemented]: "UNIMPLEMENTED",
  [Code.Internal]: "INTERNAL",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DataLoss]: "DATA_LOSS",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
};

/** An error the gateway itself answered with; undefined where its ErrorInfo is missing. */
function fromGateway(rpc: ConnectError, facts: RequestFacts): ToolgateError | undefined {
  const info = rpc.findDetails(ErrorInfoSchema).find((detail) => detail.domain === "toolgate");
  if (info === undefined) return undefined;
  const detail = rpc.findDetails(ToolErrorDetailSchema)[0];
  const retryDelay = rpc.findDetails(RetryInfoSchema)[0]?.retryDelay;
  const violations = rpc.findDetails(BadRequestSchema).flatMap((request) => request.fieldViolations);
  return new ToolgateError(info.reason, statusName(rpc.code), rpc.rawMessage, {
    modelMessage: detail?.modelMessage || rpc.rawMessage,
    retryable: detail?.retryable ?? false,
    effect: detail === undefined ? facts.effectIfLost : effectName(detail.effect),
    retryAfterMs: retryDelay === undefined ? undefined : durationMs(retryDelay),
    violations: violations.map(({ field, description, reason }) => ({ field, description, reason })),
    metadata: { ...info.metadata },
    callId: detail?.callId || facts.callId,
    cause: rpc,
  });
}

/** An error that came up on this side, or that something between the client and the gateway gave. */
function fromTransport(rpc: ConnectError, facts: RequestFacts): ToolgateError {
  const lost = { effect: facts.effectIfLost, callId: facts.callId, cause: rpc };
  if (facts.signal?.aborted === true) {
    return new ToolgateError("CALL_CANCELLED", "CANCELLED", "cancelled by the caller", lost);
  }
  if (rpc.code === Code.DeadlineExceeded) {
    const text = "the deadline passed and the gateway has not answered";
    return new ToolgateError("CALL_DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", text, { ...lost, retryable: true });
  }
  const causes = causeChain(rpc);
  const tls = causes.map(tlsProblem).find((problem) => problem !== undefined);
  if (tls !== undefined) {
    const text = `the gateway cannot be reached: ${tls.text}`;
    return new ToolgateError("GATEWAY_UNREACHABLE", "UNAVAILABLE", text, { metadata: { tls: tls.kind }, cause: rpc });
  }
  const refused = causes.find(isConnectFailure) ?? (isRefusedStream(rpc) ? rpc : undefined);
  if (refused !== undefined) {
    const text = `the gateway cannot be reached: ${plainText(refused)}`;
    return new ToolgateError("GATEWAY_UNREACHABLE", "UNAVAILABLE", text, { retryable: true, cause: rpc });
  }
  // A broken connection has the platform's error as its cause; where Connect notices it by itself, only the missing
  // headers tell its error from a status that came over the wire.
  const isLocal = causes.length > 1 || rpc.metadata.keys().next().done === true;
  if (isLocal && rpc.code !== Code.ResourceExhausted) {
    const text = `no complete answer came from the gateway: ${plainText(causes.at(-1))}`;
    const retryable = facts.effectIfLost === "none";
    return new ToolgateError("GATEWAY_CONNECTION_LOST", "UNAVAILABLE", text, { ...lost, retryable });
  }
  return new ToolgateError("RPC_FAILED", statusName(rpc.code), rpc.rawMessage || statusName(rpc.code), lost);
}

function causeChain(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let next: unknown = error; next instanceof Error && !chain.includes(next); next = next.cause) chain.push(next);
  return chain;
}

/**
 * Whether no connection came about, so that nothing can have been sent. The code alone does not tell: a connection in
 * use can time out or lose its route too. Source: Node.js documentation, `error.syscall`.
 */
function isConnectFailure(error: Error): boolean {
  if (error instanceof AggregateError)
    return error.errors.every((each) => each instanceof Error && isConnectFailure(each));
  if ("syscall" in error) return error.syscall === "connect" || error.syscall === "getaddrinfo";
  return "code" in error && error.code === "UND_ERR_CONNECT_TIMEOUT";
}

/** Text of an error; Node's AggregateError of a name with several addresses has none of its own. */
function plainText(error: Error | undefined): string {
  if (error instanceof ConnectError) return error.rawMessage;
  if (error instanceof AggregateError && error.message === "") return String(error.errors[0]);
  return error?.message || error?.name || "no reason given";
}
