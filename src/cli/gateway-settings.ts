import { mkdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type GatewayConfig, type GatewayConfigSource, parseGatewayConfig } from "../config/gateway-config.ts";
import { exposureProblem, parseListenAddress } from "../config/listen-address.ts";
import type { SourceProblem } from "../config/source-document.ts";
import { TLS_ON_A_SOCKET } from "../config/tls-settings.ts";
import { systemReason } from "./arguments.ts";
import { CliError } from "./cli-error.ts";
import type { Surroundings } from "./command.ts";
import { EXIT } from "./exit-codes.ts";

/** What the command line says over gateway.yaml. */
export interface ServeOptions {
  readonly config?: string;
  readonly tools?: string;
  readonly listen?: string;
  readonly state?: string;
  readonly logLevel?: GatewayConfig["log"]["level"];
  /** Put the faults of the settings into calls. */
  readonly injectFaults?: boolean;
}

/** Where settings come from: a file, or the built-in values where there is none. */
export interface SettingsFile {
  /** Absolute; undefined: built-in values. */
  readonly path: string | undefined;
  readonly text: string | undefined;
  readonly source: GatewayConfigSource;
}

/** The folder under the user's own that holds configuration, declarations and registrations. */
export function userFolder({ home }: Surroundings): string {
  return join(home, ".toolgate");
}

/**
 * Finds the settings: `--config`, else ./gateway.yaml, else ~/.toolgate/gateway.yaml, else none.
 *
 * @throws CliError when a file is there, or was named, and cannot be read.
 */
export async function findSettings(named: string | undefined, surroundings: Surroundings): Promise<SettingsFile> {
  const home = userFolder(surroundings);
  const { cwd } = surroundings;
  const candidates =
    named === undefined ? [join(cwd, "gateway.yaml"), join(home, "gateway.yaml")] : [resolve(cwd, named)];
  for (const path of candidates) {
    try {
      const text = await readFile(path, "utf8");
      return { path, text, source: { file: basename(path), folder: dirname(path) } };
    } catch (error) {
      const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (isMissing && named === undefined) continue;
      throw new CliError(EXIT.usage, `cannot read ${path}: ${systemReason(error)}`, { cause: error });
    }
  }
  return { path: undefined, text: undefined, source: { file: "gateway.yaml", folder: home } };
}

/** A gateway's configuration with the file it was read from. */
export interface FoundConfig {
  readonly config: GatewayConfig;
  /** Absolute; undefined: there is none. */
  readonly path: string | undefined;
}

/**
 * The gateway's configuration: the settings, and over them the command line.
 *
 * @throws CliError naming every problem with file, line and column.
 */
export async function gatewayConfig(options: ServeOptions, surroundings: Surroundings): Promise<FoundConfig> {
  const found = await readConfig(options, surroundings);
  const { config, path } = found;
  if (config.faults.rules.length > 0 && options.injectFaults !== true) {
    throw new CliError(EXIT.usage, `${path ?? "gateway.yaml"} has \`faults\`, which break calls on purpose`, {
      mend: "Remove them, or start with --inject-faults.",
    });
  }
  // Where nobody chose a folder, a newcomer finds one to put declarations into.
  if (config.origins.get("tools.folder") === "default") await makeFolder(config.tools.folder);
  return found;
}

/**
 * The same, only read: for commands that need to know the gateway and do not start it.
 *
 * @throws CliError naming every problem with file, line and column.
 */
export async function readConfig(options: ServeOptions, surroundings: Surroundings): Promise<FoundConfig> {
  const settings = await findSettings(options.config, surroundings);
  const outcome = parseGatewayConfig(settings.text, settings.source);
  if (!outcome.ok) {
    const places = problemLines(settings.source.file, outcome.problems);
    throw new CliError(EXIT.usage, `${settings.path ?? settings.source.file} is refused`, { places });
  }
  return { config: withOptions(outcome.config, options, surroundings.cwd), path: settings.path };
}

/** `file:line:column: what`, one line each. */
export function problemLines(file: string, problems: readonly SourceProblem[]): string[] {
  return problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
}

function withOptions(config: GatewayConfig, options: ServeOptions, cwd: string): GatewayConfig {
  const { listen, tools, state, logLevel } = options;
  const origins = new Map(config.origins);
  if (listen !== undefined) origins.set("listen", "--listen");
  if (tools !== undefined) origins.set("tools.folder", "--tools");
  if (state !== undefined) origins.set("state.folder", "--state");
  if (logLevel !== undefined) origins.set("log.level", "--log-level");
  return {
    ...config,
    ...(listen === undefined ? {} : { listen: listenAddress(listen, config, cwd) }),
    tools: tools === undefined ? config.tools : { ...config.tools, folder: resolve(cwd, tools) },
    state: state === undefined ? config.state : { ...config.state, folder: resolve(cwd, state) },
    log: logLevel === undefined ? config.log : { level: logLevel },
    origins,
  };
}

function listenAddress(text: string, { tls, identity }: GatewayConfig, cwd: string): GatewayConfig["listen"] {
  const listen = parseListenAddress(text, cwd);
  if ("problem" in listen) throw new CliError(EXIT.usage, `--listen: ${listen.problem}`);
  if ("path" in listen && tls !== undefined) throw new CliError(EXIT.usage, `\`tls\` and --listen: ${TLS_ON_A_SOCKET}`);
  const exposed = exposureProblem(listen, identity);
  if (exposed !== undefined) throw new CliError(EXIT.usage, `--listen: ${exposed}`);
  return listen;
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw new CliError(EXIT.usage, `cannot make the tools folder ${folder}: ${systemReason(error)}`, {
      mend: "Name another one with --tools.",
      cause: error,
    });
  }
}
