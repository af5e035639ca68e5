import type { UpstreamResult } from "../core/call.ts";
import type { GatewayError } from "../core/errors.ts";

/** Something that is the upstream's own fault: neither the caller's, nor the gateway's, nor a tool's own no. */
export interface UpstreamFault {
  /** What happened, for people and models: no address, and no word of the upstream's. */
  readonly words: string;
  /** Whether a connection to it was made. */
  readonly reachable: boolean;
}

/**
 * What one attempt shows of the upstream's health. `answered`: it works, whatever it said. `nothing`: the attempt came
 * to no end that tells, such as a cancelled one.
 */
export type Verdict = "answered" | "nothing" | UpstreamFault;

/** A result's verdict: a status of the 4xx, 429 among them, is an answer; so is a business error. */
export function verdictOfResult({ failure }: UpstreamResult): Verdict {
  if (failure?.upstreamFault !== true) return "answered";
  const code = failure.upstreamCode === undefined ? "" : ` HTTP ${failure.upstreamCode}`;
  const words = failure.reason === "UPSTREAM_BAD_RESPONSE" ? `its answer${code} cannot be read` : `it answered${code}`;
  return { words, reachable: true };
}

/**
 * An error's verdict. Only limits that are the upstream's own (connect, read, idle) speak against it: a caller who
 * gives a call little time, or goes away, must not take the tool from everybody else.
 */
export function verdictOfError({ reason, effect, retryable, metadata }: GatewayError): Verdict {
  if (reason === "UPSTREAM_TIMEOUT") return limitSpent(metadata["limit"] ?? "read");
  if (reason !== "UPSTREAM_UNREACHABLE" && reason !== "UPSTREAM_ANSWER_LOST") return "nothing";
  // What did nothing and yet must not be repeated is for the declaration to mend.
  if (effect === "none" && !retryable) return "nothing";
  const code = metadata["code"] === undefined ? "" : ` (${metadata["code"]})`;
  return metadata["phase"] === "connecting"
    ? { words: `no connection${code}`, reachable: false }
    : { words: `its answer was lost${code}`, reachable: true };
}

function limitSpent(limit: string): UpstreamFault {
  const words: Readonly<Record<string, string>> = {
    connect: "no connection within `timeout.connect`",
    idle: "its answer stopped for longer than `timeout.idle`",
  };
  return { words: words[limit] ?? `no answer within \`timeout.${limit}\``, reachable: limit !== "connect" };
}
