import { fromBinary } from "@bufbuild/protobuf";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.ts";

/** Names of the codes, by number. Source: https://grpc.io/docs/guides/status-codes/. */
const CODE_NAMES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** Name of a code. */
export type CodeName = (typeof CODE_NAMES)[number];

/** How a call ended, by what the server said. */
export interface GrpcStatus {
  /** Of a number that has no name: UNKNOWN. */
  readonly name: CodeName;
  readonly code: number;
  /** The server's own words, for people. */
  readonly message: string;
  /** What the details say, as far as they are of the well-known kinds. */
  readonly details: StatusDetails;
  /** The status of an HTTP answer that is not gRPC's, from whatever stands before the server. */
  readonly http?: number;
}

/** What google.rpc details say. */
export interface StatusDetails {
  /** Of ErrorInfo: a word that tells errors apart. */
  readonly reason?: string;
  /** Of BadRequest: fields with what is wrong with them. */
  readonly violations: readonly string[];
  /** Of RetryInfo, in milliseconds. */
  readonly retryAfterMs?: number;
}

const NO_DETAILS: StatusDetails = { violations: [] };

/** Most violations that are told. */
const MAX_VIOLATIONS = 8;

/** Headers or trailers of HTTP/2. */
export type Fields = Readonly<Record<string, string | readonly string[] | number | undefined>>;

/** The status in headers or trailers; `undefined` where there is none. Source: gRPC over HTTP/2, "Responses". */
export function statusIn(fields: Fields): GrpcStatus | undefined {
  const text = fieldOf(fields, "grpc-status");
  if (text === undefined) return undefined;
  const code = /^\d{1,3}$/.test(text) ? Number(text) : 2;
  return {
    name: CODE_NAMES[code] ?? "UNKNOWN",
    code,
    message: percentDecoded(fieldOf(fields, "grpc-message") ?? ""),
    details: detailsIn(fieldOf(fields, "grpc-status-details-bin")),
  };
}

/**
 * The status that an HTTP answer of something else than a gRPC server stands for. Source: gRPC, "HTTP to gRPC Status
 * Code Mapping".
 */
export function statusOfHttp(http: number, media: string): GrpcStatus {
  const code = codeOfHttp(http);
  const kind = media === "" ? "without a content type" : `of type ${media}`;
  return {
    name: CODE_NAMES[code] ?? "UNKNOWN",
    code,
    message: `HTTP ${http} ${kind} instead of gRPC: what answers there is no gRPC server, or a proxy before it`,
    details: NO_DETAILS,
    http,
  };
}

function codeOfHttp(http: number): number {
  switch (http) {
    case 400:
      return 13;
    case 401:
      return 16;
    case 403:
      return 7;
    case 404:
      return 12;
    case 429:
    case 502:
    case 503:
    case 504:
      return 14;
    default:
      return 2;
  }
}

/** The one value of a field; the first where it came more than once. */
export function fieldOf(fields: Fields, name: string): string | undefined {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (value === undefined || typeof value === "string") return value;
  return typeof value === "number" ? String(value) : value[0];
}

/** What is no escape stands as it came. */
function percentDecoded(text: string): string {
  const bytes = text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** Details that cannot be read say nothing: the status itself says enough. */
function detailsIn(base64: string | undefined): StatusDetails {
  if (base64 === undefined) return NO_DETAILS;
  const all = decoded(() => fromBinary(StatusSchema, Buffer.from(base64, "base64")))?.details ?? [];
  const valuesOf = (kind: string): Uint8Array[] =>
    all.filter(({ typeUrl }) => typeUrl.endsWith(`/google.rpc.${kind}`)).map(({ value }) => value);
  const [info] = valuesOf("ErrorInfo").map(reasonIn);
  const [retryAfterMs] = valuesOf("RetryInfo").map(delayIn);
  return {
    ...(info === undefined || info === "" ? {} : { reason: info }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    violations: valuesOf("BadRequest").flatMap(violationsIn).slice(0, MAX_VIOLATIONS),
  };
}

function reasonIn(bytes: Uint8Array): string | undefined {
  return decoded(() => fromBinary(ErrorInfoSchema, bytes))?.reason;
}

function delayIn(bytes: Uint8Array): number | undefined {
  const delay = decoded(() => fromBinary(RetryInfoSchema, bytes))?.retryDelay;
  return delay === undefined ? undefined : Math.max(0, Number(delay.seconds) * 1_000 + Math.ceil(delay.nanos / 1e6));
}

function violationsIn(bytes: Uint8Array): readonly string[] {
  const found = decoded(() => fromBinary(BadRequestSchema, bytes))?.fieldViolations ?? [];
  return found.map(({ field, description }) => (field === "" ? description : `${field}: ${description}`));
}

function decoded<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
