/** Milliseconds of one unit of a grpc-timeout header. Source: gRPC over HTTP/2 protocol, "Timeout". */
const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** A deadline a caller set by header. */
export interface RpcTimeout {
  /** The header that says it. */
  readonly header: "grpc-timeout" | "connect-timeout-ms";
  /** `undefined`: the value is malformed. */
  readonly timeoutMs: number | undefined;
}

/**
 * The deadline of a request by its protocol's header; `undefined` where there is none. It is read here and not by
 * Connect, whose timer fires at once for 25 days and more, and cannot be held by a test.
 */
export function rpcTimeout(headers: { get(name: string): string | null }): RpcTimeout | undefined {
  const grpc = headers.get("content-type")?.startsWith("application/grpc") === true;
  const header = grpc ? "grpc-timeout" : "connect-timeout-ms";
  const value = headers.get(header);
  if (value === null) return undefined;
  return { header, timeoutMs: grpc ? grpcMs(value) : connectMs(value) };
}

function grpcMs(value: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? [];
  return digits === undefined || unit === undefined ? undefined : Number(digits) * (UNIT_MS[unit] ?? 0);
}

/** Source: Connect protocol, "Timeout": at most ten digits. */
function connectMs(value: string): number | undefined {
  return /^\d{1,10}$/.test(value) ? Number(value) : undefined;
}
