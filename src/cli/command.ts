import { addAbortSignal, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { JsonValue } from "../core/json.ts";
import { stringifyJson } from "../core/json.ts";
import type { ApiKeys } from "./api-keys.ts";
import type { GatewayPlace } from "./connection.ts";
import type { Logins } from "./logins.ts";
import type { Output } from "./terminal.ts";

/** What a command works with. */
export interface CommandContext extends GatewayPlace {
  /** For results. */
  readonly out: Output;
  /** For everything else. */
  readonly err: Output;
  readonly stdin: Readable;
  /** `--output json`. */
  readonly json: boolean;
  /** Aborts on Ctrl-C, SIGTERM and when the reader of stdout goes away. */
  readonly signal: AbortSignal;
  /** Version of this program. */
  readonly version: string;
  readonly surroundings: Surroundings;
  /** Loads the API keys of a gateway. */
  loadApiKeys(config: GatewayConfig): Promise<ApiKeys>;
  /** Loads the logins of a gateway. */
  loadLogins(config: GatewayConfig): Promise<Logins>;
  /** Opens an address in the person's browser, if there is one. */
  openAddress(address: string): void;
}

/** Where a command line runs. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  /** Working folder. */
  readonly cwd: string;
  /** The user's own folder. */
  readonly home: string;
  /** Version of Node.js. */
  readonly runtime: string;
}

/** Prints a result as JSON. */
export async function writeJson(value: JsonValue, context: CommandContext): Promise<void> {
  await context.out.write(`${stringifyJson(value, 2)}\n`, context.signal);
}

/** All of stdin. @throws when the command is stopped before its end. */
export function readStdin({ stdin, signal }: CommandContext): Promise<string> {
  return text(addAbortSignal(signal, stdin));
}
