import { ToolgateError, type Violation } from "../../clients/typescript/src/index.ts";
import { ERROR_CATALOGUE } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { CliError } from "./cli-error.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit-codes.ts";
import { tableLines } from "./table.ts";
import { type Output, plain } from "./terminal.ts";

/** Mends in words of the command line, where the catalogue speaks to programs or knows nothing. */
const MENDS: Readonly<Record<string, string>> = {
  TOOL_NOT_FOUND: "`toolgate tool list` shows the names.",
  ARGUMENTS_INVALID: "`toolgate tool get NAME` shows what the tool takes. Nothing was sent to its upstream.",
  CREDENTIAL_MISSING: "Name a file with your API key with --api-key, or set TOOLGATE_API_KEY.",
  CREDENTIAL_INVALID: "Look at the file of --api-key, or TOOLGATE_API_KEY; `toolgate key create` makes a new key.",
  TOOL_EXISTS: "Take another name, or change the tool where it was declared.",
  ETAG_MISMATCH: "`toolgate tool get NAME` shows the present etag.",
  CALL_DEADLINE_EXCEEDED: "Give it more time with --timeout, or raise `timeout.total` of the tool.",
  GATEWAY_UNREACHABLE: "Start one with `toolgate serve`, or name its address with --address or TOOLGATE_ADDRESS.",
  GATEWAY_CONNECTION_LOST: "Does a gateway run at that address? `toolgate doctor` tells, and its log says more.",
  STREAM_INCOMPLETE: "Find out whether the call took effect before calling again.",
  CALL_CANCELLED: "",
};

/** Mends where no connection came about for TLS, by the client's word for why. */
const TLS_MENDS: Readonly<Record<string, string>> = {
  CERTIFICATE_UNTRUSTED: "Name the certificate of whoever signed it with --ca FILE or TOOLGATE_CA.",
  CERTIFICATE_NAME: "Use an address the certificate names, or say its name with --tls-server-name.",
  CERTIFICATE_DATES: "Renew the gateway's certificate, and look at the clocks of both machines.",
  TLS_EXPECTED: "Write https:// before the address.",
  PLAINTEXT_EXPECTED: "Leave https:// out, or give the gateway a certificate (`tls` in gateway.yaml).",
  TLS_HANDSHAKE: "Look at `tls.min_version` in gateway.yaml; is it a gateway that answers there?",
};

/** Any error of a command as the client's or the command line's own. */
export type Failure = ToolgateError | CliError;

/** The error itself, or a CliError around one that nobody expected. */
export function asFailure(error: unknown): Failure {
  if (error instanceof ToolgateError || error instanceof CliError) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new CliError(EXIT.internal, `internal error: ${text}`, { mend: "Report it with what you did.", cause: error });
}

/** What the process ends with. */
export function exitCodeOfFailed(failure: Failure): ExitCode {
  return failure instanceof CliError ? failure.exitCode : exitCodeOf(failure);
}

/** Prints an error for people: what is wrong, each wrong place, what to do. */
export function printError(failure: Failure, err: Output): void {
  const reason = failure instanceof ToolgateError ? `${err.paint("bold", failure.reason)} ` : "";
  err.line(`${err.paint("red", "error:")} ${reason}${plain(headline(failure))}`);
  if (failure instanceof CliError) {
    for (const place of failure.places) err.line(`  ${plain(place)}`);
    if (failure.exitCode === EXIT.internal && failure.cause instanceof Error) err.line(failure.cause.stack ?? "");
  } else {
    for (const line of tableLines(failure.violations.map(violationRow))) err.line(`  ${line}`);
    if (failure.effect !== "none") err.line(effectLine(failure));
  }
  const mend = mendOf(failure);
  if (mend !== "") err.line(`${err.paint("cyan", "mend:")} ${plain(mend)}`);
}

/** The error for scripts. */
export function errorJson(failure: Failure): JsonObject {
  if (failure instanceof CliError) {
    return {
      error: {
        message: failure.message,
        places: failure.places,
        mend: failure.mend,
        exitCode: failure.exitCode,
      },
    };
  }
  return {
    error: {
      reason: failure.reason,
      status: failure.status,
      message: failure.message,
      retryable: failure.retryable,
      effect: failure.effect,
      ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }),
      ...(failure.callId === undefined ? {} : { callId: failure.callId }),
      violations: failure.violations.map(({ field, description, reason }) => ({ field, description, reason })),
      metadata: failure.metadata,
      mend: mendOf(failure),
      exitCode: exitCodeOf(failure),
    },
  };
}

/** The message up to where it begins to list the wrong places, which are printed line by line. */
function headline(failure: Failure): string {
  const { message } = failure;
  const first = failure instanceof ToolgateError ? failure.violations[0] : undefined;
  if (first === undefined || !message.includes(first.description)) return message;
  const at = message.indexOf(`: ${first.field}`);
  return at > 0 ? message.slice(0, at) : message;
}

function violationRow({ field, reason, description }: Violation): string[] {
  return [plain(field) || "(whole)", plain(reason), plain(description)];
}

function effectLine(error: ToolgateError): string {
  const words = error.effect === "unknown" ? "the call may have taken effect" : "the call took effect";
  return `  ${words}${error.callId === undefined ? "" : ` (call ${error.callId})`}`;
}

/** What to do about it; empty: nothing to add. */
export function mendOf(failure: Failure): string {
  if (failure instanceof CliError) return failure.mend;
  const { tls = "" } = failure.metadata;
  if (failure.reason === "GATEWAY_UNREACHABLE" && Object.hasOwn(TLS_MENDS, tls)) return TLS_MENDS[tls] ?? "";
  const own = Object.hasOwn(MENDS, failure.reason) ? MENDS[failure.reason] : undefined;
  if (own !== undefined) return own;
  const catalogue: Readonly<Record<string, { readonly mend: string }>> = ERROR_CATALOGUE;
  return Object.hasOwn(catalogue, failure.reason) ? (catalogue[failure.reason]?.mend ?? "") : "";
}
