import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { requestInvalid } from "./request-error.ts";

/** Largest number of seconds. Source: google/protobuf/duration.proto. */
const MAX_SECONDS = 315_576_000_000n;

/** What a duration in a request may be, in milliseconds, both ends included. */
export interface DurationRange {
  readonly minMs: number;
  readonly maxMs: number;
  /** The range in words, after "must be". */
  readonly words: string;
}

/**
 * A duration of a request in milliseconds; `undefined` where it is absent.
 *
 * @throws GatewayError REQUEST_INVALID naming the field when it is malformed or out of the range.
 */
export function durationMs(field: string, duration: Duration | undefined, range: DurationRange): number | undefined {
  if (duration === undefined) return undefined;
  const { seconds, nanos } = duration;
  const signsDiffer = (seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0);
  if (seconds > MAX_SECONDS || seconds < -MAX_SECONDS || Math.abs(nanos) > 999_999_999 || signsDiffer) {
    throw requestInvalid(field, "MALFORMED", "is no valid google.protobuf.Duration");
  }
  const ms = Number(seconds) * 1000 + nanos / 1e6;
  if (ms < range.minMs || ms > range.maxMs) {
    throw requestInvalid(field, "OUT_OF_RANGE", `must be ${range.words}, got ${ms / 1000} s`);
  }
  return ms;
}

/** Fields of a google.protobuf.Duration of so many milliseconds. */
export function toDuration(ms: number): { seconds: bigint; nanos: number } {
  const micros = Math.round(ms * 1000);
  const seconds = Math.floor(micros / 1e6);
  return { seconds: BigInt(seconds), nanos: (micros - seconds * 1e6) * 1000 };
}

/** Fields of a google.protobuf.Timestamp of a moment in milliseconds since the epoch. */
export function toTimestamp(ms: number): Pick<Timestamp, "seconds" | "nanos"> {
  return toDuration(ms);
}
