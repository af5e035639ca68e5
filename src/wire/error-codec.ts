import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { ToolErrorDetailSchema } from "../../gen/toolgate/v1/errors_pb.ts";
import { type FieldViolation, GatewayError, type StatusName } from "../core/errors.ts";
import { toDuration } from "./durations.ts";
import { EFFECT_NUMBERS } from "./enums.ts";
import { cutUtf8, utf8Length } from "./utf8.ts";

/** `domain` of every google.rpc.ErrorInfo. */
const ERROR_DOMAIN = "toolgate";

/**
 * Most bytes of an error's message, and of its text for the model; a longer one is cut on a code point border and
 * ends in `…`. Both ride in gRPC trailers, up to six bytes for one of the message, and Java and C clients refuse
 * trailers over 8 KiB in all.
 */
export const MAX_MESSAGE_BYTES = 1024;

/** What an error's two trailers may take, less than those 8 KiB by room for the server's own. */
const MAX_TRAILER_BYTES = 7 * 1024;
/** For tags, lengths, type URLs and ids. */
const OVERHEAD_BYTES = 400;
const MAX_METADATA_BYTES = 1024;
const MAX_METADATA_VALUE_BYTES = 256;
const MAX_FIELD_BYTES = 256;
const MAX_DESCRIPTION_BYTES = 512;

const CODES = {
  CANCELLED: Code.Canceled,
  UNKNOWN: Code.Unknown,
  INVALID_ARGUMENT: Code.InvalidArgument,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  NOT_FOUND: Code.NotFound,
  ALREADY_EXISTS: Code.AlreadyExists,
  PERMISSION_DENIED: Code.PermissionDenied,
  RESOURCE_EXHAUSTED: Code.ResourceExhausted,
  FAILED_PRECONDITION: Code.FailedPrecondition,
  ABORTED: Code.Aborted,
  OUT_OF_RANGE: Code.OutOfRange,
  UNIMPLEMENTED: Code.Unimplemented,
  INTERNAL: Code.Internal,
  UNAVAILABLE: Code.Unavailable,
  DATA_LOSS: Code.DataLoss,
  UNAUTHENTICATED: Code.Unauthenticated,
} as const satisfies Readonly<Record<StatusName, Code>>;

type OutgoingDetails = NonNullable<ConstructorParameters<typeof ConnectError>[3]>;

/** The error as it goes to a client, with its details. Its cause stays here. `callId`: of the call it ended. */
export function toConnectError(error: GatewayError, callId?: string): ConnectError {
  const message = cutUtf8(error.message, MAX_MESSAGE_BYTES);
  return new ConnectError(message, CODES[error.status], undefined, details(error, message, callId), error.cause);
}

/** What is known of the RPC in which Connect itself raised an error. */
export interface ConnectErrorFacts {
  /** Limit for a request message, in bytes. */
  readonly requestBytes: number;
  /** Whether the handler had given its answer: then the answer is at fault, not the request. */
  readonly answered: boolean;
  /** Of the call, if one was accepted. */
  readonly callId: string | undefined;
}

/**
 * Gives an error that Connect raised by itself (a message too large, an unknown JSON field) the status, text and
 * details of a GatewayError, and returns that. Changes the error in place, since Connect writes the very object it
 * raised. An error that has details already is left alone: `undefined`.
 */
export function describeConnectError(error: ConnectError, facts: ConnectErrorFacts): GatewayError | undefined {
  if (error.details.length > 0) return undefined;
  const fault = connectFault(error, facts);
  const { message, code, rawMessage, details: described } = toConnectError(fault, facts.callId);
  Object.assign(error, { message, code, rawMessage, details: described });
  return fault;
}

/**
 * Connect's text is about the caller's own bytes and names the field at fault, which nothing else knows, so here, and
 * only here, the text of another error is passed on.
 */
function connectFault(error: ConnectError, { requestBytes, answered }: ConnectErrorFacts): GatewayError {
  const text = error.rawMessage;
  if (answered) {
    if (error.code === Code.ResourceExhausted) {
      return new GatewayError("RESULT_TOO_LARGE", `the answer is larger than the gateway sends: ${text}`, {
        effect: "unknown",
        cause: error,
      });
    }
    // A copy: the error itself is about to get another text.
    return GatewayError.from(new Error(text));
  }
  switch (error.code) {
    case Code.ResourceExhausted:
      return new GatewayError(
        "REQUEST_TOO_LARGE",
        `the request is larger than ${requestBytes} bytes (${text}); send less or raise \`limits.request_bytes\``,
        { metadata: { limit_bytes: String(requestBytes) }, cause: error },
      );
    case Code.DeadlineExceeded:
      return new GatewayError("CALL_DEADLINE_EXCEEDED", "the RPC deadline passed", { cause: error });
    case Code.Canceled:
    case Code.Aborted:
      return new GatewayError("CALL_CANCELLED", "the caller went away", { cause: error });
    default:
      // Only a refused encoding comes with metadata: the encodings that are accepted.
      if (error.code === Code.Unimplemented && [...error.metadata].length > 0) {
        return new GatewayError("NOT_SUPPORTED_YET", text, { metadata: { field: "compression" }, cause: error });
      }
      return new GatewayError("REQUEST_INVALID", `the request cannot be read: ${text}`, { cause: error });
  }
}

function details(error: GatewayError, message: string, callId: string | undefined): OutgoingDetails {
  const modelMessage = error.modelMessage === error.message ? message : cutUtf8(error.modelMessage, MAX_MESSAGE_BYTES);
  const metadata = shortMetadata(error.metadata);
  const packed = Object.entries(metadata).reduce(
    (sum, [key, value]) => sum + entryLength(key, value),
    utf8Length(message) + utf8Length(modelMessage) + OVERHEAD_BYTES,
  );
  const room = MAX_TRAILER_BYTES - encodeURIComponent(message).length - base64Length(packed);
  const fieldViolations = violationsWithin(error.violations, room);
  const omitted = error.violations.length - fieldViolations.length;
  if (omitted > 0) metadata["violations_omitted"] = String(omitted);
  const described: OutgoingDetails = [
    { desc: ErrorInfoSchema, value: { reason: error.reason, domain: ERROR_DOMAIN, metadata } },
    {
      desc: ToolErrorDetailSchema,
      value: {
        modelMessage,
        retryable: error.retryable,
        effect: EFFECT_NUMBERS[error.effect],
        ...(callId === undefined ? {} : { callId }),
      } satisfies MessageInitShape<typeof ToolErrorDetailSchema>,
    },
  ];
  if (fieldViolations.length > 0) described.push({ desc: BadRequestSchema, value: { fieldViolations } });
  if (error.retryAfterMs !== undefined) {
    described.push({ desc: RetryInfoSchema, value: { retryDelay: toDuration(error.retryAfterMs) } });
  }
  return described;
}

/** As many entries, from the first, as a fair share of a trailer holds. */
function shortMetadata(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const fitting: [string, string][] = [];
  let left = MAX_METADATA_BYTES;
  for (const [key, value] of Object.entries(metadata)) {
    const short = cutUtf8(value, MAX_METADATA_VALUE_BYTES);
    left -= entryLength(key, short);
    if (left < 0) break;
    fitting.push([key, short]);
  }
  return Object.fromEntries(fitting);
}

function entryLength(key: string, value: string): number {
  return utf8Length(key) + utf8Length(value) + 6;
}

/** As many violations, from the first, as `roomBytes` of a trailer hold. */
function violationsWithin(violations: readonly FieldViolation[], roomBytes: number): FieldViolation[] {
  const fitting: FieldViolation[] = [];
  let left = roomBytes;
  for (const { field, description, reason } of violations) {
    const short = {
      field: cutUtf8(field, MAX_FIELD_BYTES),
      description: cutUtf8(description, MAX_DESCRIPTION_BYTES),
      reason,
    };
    left -= base64Length(utf8Length(short.field) + utf8Length(short.description) + utf8Length(reason) + 12);
    if (left < 0) break;
    fitting.push(short);
  }
  return fitting;
}

function base64Length(bytes: number): number {
  return Math.ceil((bytes * 4) / 3);
}
