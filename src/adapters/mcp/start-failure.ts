import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnsupportedProtocolVersionError,
} from "@modelcontextprotocol/client";
import { GatewayError } from "../../core/errors.ts";
import { oneLine, textBeginning, textEnd } from "../../core/text.ts";
import type { Availability } from "../../core/tool.ts";
import type { ProgramEnd } from "../shared/launcher/running-program.ts";
import { NotConnected } from "../shared/network/http-channel.ts";
import { ProgramLink, StartRefused } from "./program-link.ts";
import type { ServerLink } from "./server-link.ts";
import { RpcFailure } from "./session.ts";

/** How much of a server's words an error shows. */
const MAX_WORDS = 400;

/** Why a server could not be started or reached. */
export class StartFailure extends Error {
  /** What to do about it, for people. */
  readonly mend: string;

  /** `message` goes on after "failed: "; it holds no secret. */
  constructor(message: string, mend: string, options: { readonly cause?: unknown } = {}) {
    super(oneLine(message), { cause: options.cause });
    this.name = "StartFailure";
    this.mend = mend;
  }
}

/** What is said of a server that failed. */
export function failedState({ message, mend }: StartFailure): Availability {
  return { state: "unavailable", reason: `failed: ${message}`, ...(mend === "" ? {} : { mend }) };
}

const LOOK_AT_SERVER = "Look at the server's own log, and run its command by hand.";
const LOOK_AT_URL = "Check that the server runs, and `mcp.url`.";

/** How a program ended, in words; undefined where it did not end by itself. */
export function endInWords(end: ProgramEnd | undefined): string | undefined {
  switch (end?.kind) {
    case "exited":
      return end.exit.signal === null ? `exited with code ${end.exit.code}` : `was ended by ${end.exit.signal}`;
    case "lost":
      return "ended with the process that runs the gateway's programs";
    case "refused":
    case "killed":
    case undefined:
      return undefined;
  }
}

/** The end of a server's error output, as one short line; empty where there is none. `mask` hides secrets. */
export function lastWords(errors: string, mask: (text: string) => string): string {
  const text = mask(errors).trim();
  if (text === "") return "";
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  // The reason stands first in most traces, and the end of what is kept is nearest to it.
  const words = lines
    .slice(-8)
    .map((line) => line.trim())
    .join(" | ");
  return `: ${oneLine(textEnd(words, MAX_WORDS)).toWellFormed()}`;
}

/** The failure of a server whose program ended. */
export function programEnded(
  how: string,
  errors: string,
  mask: (text: string) => string,
  cause?: unknown,
): StartFailure {
  return new StartFailure(`the server ${how}${lastWords(errors, mask)}`, LOOK_AT_SERVER, { cause });
}

/** What went wrong between the gateway and a server that was to be started. */
export function failureOf(error: unknown, link: ServerLink | undefined): StartFailure {
  if (error instanceof StartFailure) return error;
  return knownFailure(error) ?? failureBelow(error, link) ?? versionFailure(error, link) ?? brokenOff(error);
}

/** The failure of an error that says by itself what happened. */
function knownFailure(error: unknown): StartFailure | undefined {
  if (error instanceof GatewayError) return new StartFailure(error.message, "", { cause: error });
  if (error instanceof StartRefused) return new StartFailure(error.message, LOOK_AT_SERVER, { cause: error });
  if (error instanceof SdkHttpError) return refusal(error);
  if (error instanceof NotConnected) {
    return new StartFailure(`no connection: ${error.message}`, error.mend || LOOK_AT_URL, { cause: error });
  }
  if (error instanceof UnsupportedProtocolVersionError) {
    const text = `the server speaks MCP ${shown(error.supported.join(", "))}, which the gateway does not`;
    return new StartFailure(text, "Use another version of the server.", { cause: error });
  }
  if (error instanceof ProtocolError) return rpcRefusal({ code: error.code, message: error.message }, error);
  return error instanceof RpcFailure ? rpcRefusal(error.error, error) : undefined;
}

/** The SDK puts an error of the connection into one of its own. */
function failureBelow(error: unknown, link: ServerLink | undefined): StartFailure | undefined {
  const data = error instanceof SdkError ? error.data : undefined;
  const below = typeof data === "object" && data !== null && "cause" in data ? data.cause : undefined;
  return below instanceof Error && below !== error ? failureOf(below, link) : undefined;
}

function versionFailure(error: unknown, link: ServerLink | undefined): StartFailure | undefined {
  if (error instanceof SdkError) {
    if (error.code !== SdkErrorCode.EraNegotiationFailed) return undefined;
    const mend = "Set `mcp.protocol` to `auto` or `legacy`.";
    return new StartFailure("the server does not speak MCP 2026-07-28", mend, { cause: error });
  }
  if (link?.named === undefined) return undefined;
  const text = `the server speaks MCP ${shown(link.named)}, the gateway 2024-11-05 to 2025-11-25 and 2026-07-28`;
  return new StartFailure(text, "Use another version of the server, or another `mcp.protocol`.", { cause: error });
}

function brokenOff(error: unknown): StartFailure {
  return new StartFailure("the connection broke off", "Look at the server.", { cause: error });
}

function refusal(error: SdkHttpError): StartFailure {
  const { status } = error;
  if (status === 401 || status === 403) {
    const text = `the server refuses the gateway's credential (HTTP ${status})`;
    return new StartFailure(text, "Set or correct `mcp.auth` or `mcp.headers`.", { cause: error });
  }
  if (error.code === SdkErrorCode.ClientHttpUnexpectedContent)
    return new StartFailure(error.message, LOOK_AT_URL, { cause: error });
  return new StartFailure(`the server answered HTTP ${status}`, LOOK_AT_URL, { cause: error });
}

function rpcRefusal(
  { code, message }: { readonly code: number; readonly message: string },
  cause: unknown,
): StartFailure {
  const text = `the server answered with error ${code}: ${shown(message)}`;
  return new StartFailure(text, LOOK_AT_SERVER, { cause });
}

function shown(text: string): string {
  return oneLine(textBeginning(text, 200));
}

/** Whether the server was there and did not take what it was told, as one of another era would not. */
export function isOfProtocol(error: unknown): boolean {
  const below = error instanceof StartFailure ? error.cause : error;
  return (
    below instanceof SdkHttpError ||
    below instanceof ProtocolError ||
    below instanceof RpcFailure ||
    below instanceof SdkError
  );
}

/** How the program behind a link ended by itself, in words; undefined where it did not, and where there is none. */
export function endedHow(link: ServerLink, mask: (text: string) => string): string | undefined {
  const how = link instanceof ProgramLink ? endInWords(link.end) : undefined;
  return link instanceof ProgramLink && how !== undefined
    ? `the server ${how}${lastWords(link.errors, mask)}`
    : undefined;
}
