/** What the load generator is asked to do. One process answers one at a time. */
export interface LoadPlan {
  readonly kind: "unary" | "first-delta" | "stream";
  readonly client: ClientKind;
  /** Server under load. */
  readonly port: number;
  /** Process whose CPU time counts; absent: the load generator's own, for a call without a server of ours. */
  readonly pid: number | undefined;
  /** Tool to call, or path for a direct call. */
  readonly target: string;
  readonly validateOnly: boolean;
  /** Calls or streams at a time. */
  readonly inFlight: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How the load generator speaks to a server. */
export type ClientKind = "grpc" | "connect-h1" | "connect-h2" | "direct";

/** What the load generator saw. */
export interface LoadResult {
  /** Calls, first deltas or stream messages within the measured time. */
  readonly count: number;
  readonly bytes: number;
  readonly seconds: number;
  /** Milliseconds. Not measured for `stream`. */
  readonly p50: number | undefined;
  readonly p99: number | undefined;
  /** Microseconds of CPU, all threads of `pid`, for each of `count`; undefined where the system does not tell. */
  readonly cpuMicros: number | undefined;
}

/** What the load generator sends back. */
export type LoadReply =
  | { readonly ok: true; readonly result: LoadResult }
  | { readonly ok: false; readonly error: string };

/** The middle of the values; the mean of both middles for an even number. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** The value that a share of the values does not exceed. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** Names in the order A B C C B A …, so that a drift of the machine meets all alike. */
export function interleaved<T>(items: readonly T[], rounds: number): T[] {
  return Array.from({ length: rounds }, (_, round) => (round % 2 === 0 ? items : items.toReversed())).flat();
}
