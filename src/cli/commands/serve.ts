import { once } from "node:events";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { GatewayError } from "../../core/errors.ts";
import { addressText } from "../../core/listen-address.ts";
import { CliError } from "../cli-error.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { type FoundConfig, gatewayConfig, type ServeOptions } from "../gateway-settings.ts";
import type { Host, LeveledLogger, RunningGateway } from "../host.ts";
import { SettingsWatch } from "../settings-watch.ts";
import type { Output } from "../terminal.ts";

/**
 * Runs the gateway until a signal asks it to stop. A second signal, or an error nobody caught, ends it with 1.
 *
 * @throws CliError where it cannot start.
 */
export async function serve(options: ServeOptions, host: Host, err: Output): Promise<ExitCode> {
  const read = (file = options.config): Promise<FoundConfig> =>
    gatewayConfig({ ...options, ...(file === undefined ? {} : { config: file }) }, host.surroundings);
  return runGateway(await read(), { read, host, err, injectFaults: options.injectFaults === true });
}

interface Serving {
  /** Reads the settings, from the file named. */
  read(file?: string): Promise<FoundConfig>;
  readonly host: Host;
  readonly err: Output;
  readonly injectFaults: boolean;
}

async function runGateway(
  { config, path }: FoundConfig,
  { read, host, err, injectFaults }: Serving,
): Promise<ExitCode> {
  const server = await host.loadServer();
  const logger = server.createLogger(config.log.level);
  const stop = new AbortController();
  let code: ExitCode = EXIT.ok;
  using _signals = host.onSignal((signal) => {
    if (stop.signal.aborted) host.exit(EXIT.failed);
    logger.info("gateway-stopping", { signal });
    stop.abort();
  });
  using _uncaught = host.onUncaught((error) => {
    // Nobody knows what state the process is in, so it stops; calls in flight get their chance to end.
    logger.error("uncaught-error", { error });
    code = EXIT.failed;
    stop.abort();
  });
  const gateway = await startGateway(() => server.createGateway({ config, logger, injectFaults }), config);
  if (injectFaults) logger.warn("faults-enabled", { rules: config.faults.rules.length });
  // Before it is said to listen: whoever reads that may send SIGHUP, which would end a process that does not hear it.
  await using _watch = await watchSettings(path, { gateway, logger, level: config.log.level, host, read });
  const { url } = gateway;
  const tools = config.tools.folder;
  // For whoever started it: words at a terminal, a log line elsewhere, so that a log holds nothing but its lines.
  if (err.isTerminal) err.line(`toolgate ${host.version} listening on ${url}, tools from ${tools}`);
  else logger.info("gateway-listening", { url, version: host.version, tools });
  if (!stop.signal.aborted) await once(stop.signal, "abort");
  await gateway.stop();
  logger.info("gateway-stopped");
  return code;
}

interface Reloading extends Pick<Serving, "read" | "host"> {
  readonly gateway: RunningGateway;
  readonly logger: LeveledLogger;
  /** The logger's level at the start. */
  readonly level: GatewayConfig["log"]["level"];
}

/** Takes over what is changed in the file of settings while the gateway runs; on SIGHUP at once. */
async function watchSettings(
  path: string | undefined,
  { gateway, logger, host, read, ...start }: Reloading,
): Promise<AsyncDisposable> {
  let { level } = start;
  if (path === undefined) {
    // Without a listener the signal would end the process.
    const skip = (): void => logger.info("settings-reload-skipped", { reason: "there is no file of settings" });
    const ears = host.onReload(skip);
    return { [Symbol.asyncDispose]: async () => ears[Symbol.dispose]() };
  }
  const watch = await SettingsWatch.start({
    path,
    logger,
    read: async () => (await read(path)).config,
    apply: async (config) => {
      const { applied, needRestart } = await gateway.reconfigure(config);
      const isOther = config.log.level !== level;
      level = config.log.level;
      if (isOther) logger.setLevel(level);
      logger.info("settings reloaded", {
        file: path,
        applied: isOther ? [...applied, "log.level"] : applied,
        needRestart: needRestart.filter((key) => key !== "log.level"),
      });
    },
  });
  const ears = host.onReload(() => watch.reload());
  return {
    [Symbol.asyncDispose]: async () => {
      ears[Symbol.dispose]();
      await watch[Symbol.asyncDispose]();
    },
  };
}

async function startGateway(start: () => Promise<RunningGateway>, config: GatewayConfig): Promise<RunningGateway> {
  try {
    return await start();
  } catch (error) {
    throw startFailure(error, config);
  }
}

/** What keeps a gateway from starting, in words that say what to do. */
function startFailure(error: unknown, { listen }: GatewayConfig): unknown {
  const where = addressText(listen);
  const host = "host" in listen ? listen.host : "127.0.0.1";
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const code = "code" in cause ? cause.code : undefined;
    // The folders of tools and registrations can be refused with the same codes.
    if (!("syscall" in cause) || (cause.syscall !== "listen" && cause.syscall !== "getaddrinfo")) continue;
    if (code === "EADDRINUSE") {
      const mend = `A gateway may run there already (toolgate doctor). Or listen elsewhere: --listen ${host}:0.`;
      return new CliError(EXIT.failed, `${where} is in use by another program`, { mend, cause: error });
    }
    if (code === "EACCES") {
      const mend = "Ports below 1024 need more rights: take another with --listen.";
      return new CliError(EXIT.failed, `no right to listen on ${where}`, { mend, cause: error });
    }
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
      const mend = "Take another with --listen.";
      return new CliError(EXIT.failed, `this machine has no address ${host}`, { mend, cause: error });
    }
  }
  return error instanceof GatewayError ? new CliError(EXIT.failed, error.message, { cause: error }) : error;
}
