import { CommanderError } from "commander";
import { CliError } from "./cli-error.ts";
import type { CommandContext } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import type { Host } from "./host.ts";
import { createProgram, type GlobalOptions } from "./program.ts";
import { Output } from "./terminal.ts";

/** Runs a command line (without the program's own name). Resolves with the exit code when everything is written. */
export async function runCli(argv: readonly string[], host: Host): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok;
  let complaint = "";
  let onBroken = throwUnlessClosed;
  // They stay until the process ends, since a closed pipe may show only after the last write.
  for (const stream of [host.stdout, host.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => onBroken(error));
  }
  const program = createProgram({
    version: host.version,
    env: host.surroundings.env,
    writeOut: (text) => host.stdout.write(text),
    writeErr: (text) => {
      complaint += text;
    },
    actions: {
      async client(globals, run) {
        const stop = new AbortController();
        onBroken = (error) => stop.abort(isClosedPipe(error) ? new Stopped(EXIT.ok, "nobody reads on") : error);
        code = await runClient(globals, host, { run, stop });
      },
      async serve(globals, options) {
        const { serve } = await import("./commands/serve.ts");
        const { err } = outputs(globals, host);
        code = await serve(options, host, err).catch((error: unknown) => report(error, globals.output === "json", err));
      },
    },
  });
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return EXIT.ok;
    if (!asksForJson(argv)) host.stderr.write(complaint);
    else await report(usageError(error, complaint), true, new Output(host.stderr, false, host.surroundings.env));
    return EXIT.usage;
  }
  return code;
}

/** `| head` has read enough: that is no failure, and a gateway goes on without a reader of its log. */
function throwUnlessClosed(error: NodeJS.ErrnoException): void {
  if (!isClosedPipe(error)) throw error;
}

function isClosedPipe({ code }: NodeJS.ErrnoException): boolean {
  return code === "EPIPE";
}

/** Whether the command line asks for JSON, as far as one can tell that cannot be parsed. */
function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  const options = end === -1 ? argv : argv.slice(0, end);
  return options.some((word, i) => word === "--output=json" || (word === "--output" && options[i + 1] === "json"));
}

/** A wrong command line as an error of ours; without a command all there is to say is the help. */
function usageError(error: CommanderError, complaint: string): CliError {
  const isHelp = error.code === "commander.help";
  const [first = ""] = complaint.replace(/^error: /, "").split("\n");
  return new CliError(EXIT.usage, isHelp ? "a command is missing" : first, { mend: "`toolgate --help` shows how." });
}

/** Why a command was stopped from outside. */
class Stopped extends Error {
  readonly code: ExitCode;

  constructor(code: ExitCode, message: string) {
    super(message);
    this.name = "Stopped";
    this.code = code;
  }
}

async function runClient(
  globals: GlobalOptions,
  host: Host,
  {
    run,
    stop,
  }: {
    readonly run: (context: CommandContext) => Promise<ExitCode>;
    /** Ends the command. */
    readonly stop: AbortController;
  },
): Promise<ExitCode> {
  const { out, err } = outputs(globals, host);
  using _signals = host.onSignal((signal) => {
    const code = signal === "SIGINT" ? EXIT.interrupted : EXIT.terminated;
    // The first one cancels the work, up to the upstream; whoever asks twice does not want to wait for that.
    if (stop.signal.aborted) host.exit(code);
    else stop.abort(new Stopped(code, signal === "SIGINT" ? "interrupted" : "terminated"));
  });
  const { output, address, ca, tlsServerName, apiKey } = globals;
  const { stdin, version, surroundings } = host;
  try {
    const place = { address, ca, tlsServerName, apiKeyFile: apiKey };
    return await run({
      ...place,
      out,
      err,
      stdin,
      version,
      surroundings,
      loadApiKeys: (config) => host.loadApiKeys(config),
      loadLogins: (config) => host.loadLogins(config),
      openAddress: (page) => host.openAddress(page),
      json: output === "json",
      signal: stop.signal,
    });
  } catch (error) {
    return await report(stop.signal.aborted ? stop.signal.reason : error, output === "json", err);
  }
}

async function report(error: unknown, json: boolean, err: Output): Promise<ExitCode> {
  if (error instanceof Stopped) {
    // A terminal has just written ^C into the line.
    if (error.code !== EXIT.ok) err.line(err.isTerminal ? `\n${error.message}` : error.message);
    return error.code;
  }
  const { asFailure, errorJson, exitCodeOfFailed, printError } = await import("./render-error.ts");
  const { stringifyJson } = await import("../core/json.ts");
  const failure = asFailure(error);
  if (json) err.line(stringifyJson(errorJson(failure), 2));
  else printError(failure, err);
  return exitCodeOfFailed(failure);
}

function outputs(globals: GlobalOptions, host: Host): { out: Output; err: Output } {
  const { stdout, stderr, surroundings } = host;
  const { color } = globals;
  return { out: new Output(stdout, color, surroundings.env), err: new Output(stderr, color, surroundings.env) };
}
