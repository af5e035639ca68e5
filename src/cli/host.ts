import type { Readable } from "node:stream";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Logger } from "../core/logger.ts";
import type { ApiKeys } from "./api-keys.ts";
import type { Surroundings } from "./command.ts";
import type { ExitCode } from "./exit-codes.ts";
import type { Logins } from "./logins.ts";
import type { OutputStream } from "./terminal.ts";

/** The process a command line runs in. */
export interface Host {
  readonly stdin: Readable;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly surroundings: Surroundings;
  /** Version of this program. */
  readonly version: string;
  /** Hears SIGINT and SIGTERM until it is disposed. */
  onSignal(listener: (signal: StopSignal) => void): Disposable;
  /** Hears SIGHUP, which asks a process to read its settings again, until it is disposed. */
  onReload(listener: () => void): Disposable;
  /** Hears of an error that nothing caught, until it is disposed. */
  onUncaught(listener: (error: unknown) => void): Disposable;
  /** Ends the process at once. */
  exit(code: ExitCode): void;
  /** Loads the API keys of a gateway; what is done with them is put on record. */
  loadApiKeys(config: GatewayConfig): Promise<ApiKeys>;
  /** Loads the logins of a gateway; what is done with them is put on record. */
  loadLogins(config: GatewayConfig): Promise<Logins>;
  /** Opens an address in the person's browser, if there is one. */
  openAddress(address: string): void;
  /** Loads the gateway; the other commands do without it. */
  loadServer(): Promise<ServerParts>;
}

/** A signal that asks a process to end. */
export type StopSignal = "SIGINT" | "SIGTERM";

/** A gateway that runs. */
export interface RunningGateway {
  /** Where clients reach it. */
  readonly url: string;
  /** Takes over other settings; says by dotted key which are in force now and which need a new start. */
  reconfigure(
    config: GatewayConfig,
  ): Promise<{ readonly applied: readonly string[]; readonly needRestart: readonly string[] }>;
  /** Lets running calls end, then closes everything. */
  stop(): Promise<void>;
}

/** A logger whose least level can be changed. */
export interface LeveledLogger extends Logger {
  setLevel(level: GatewayConfig["log"]["level"]): void;
}

/** What the gateway is made of; loaded for this command only. */
export interface ServerParts {
  createGateway(options: {
    readonly config: GatewayConfig;
    readonly logger: Logger;
    readonly injectFaults: boolean;
  }): Promise<RunningGateway>;
  createLogger(level: GatewayConfig["log"]["level"]): LeveledLogger;
}
