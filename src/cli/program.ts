import { Command, Option } from "commander";
import type { CommandContext } from "./command.ts";
import type { DoctorOptions } from "./commands/doctor.ts";
import type { KeyPlace } from "./commands/key.ts";
import type { LoginOptions, LoginPlace } from "./commands/login.ts";
import type { LogsOptions } from "./commands/logs.ts";
import type { ReadCommandOptions, SearchCommandOptions } from "./commands/result-read.ts";
import type { CallCommandOptions } from "./commands/tool-call.ts";
import type { ToolListOptions } from "./commands/tool-list.ts";
import type { RegisterCommandOptions } from "./commands/tool-register.ts";
import type { UnregisterCommandOptions } from "./commands/tool-unregister.ts";
import { DEFAULT_ADDRESS } from "./default-address.ts";
import type { ExitCode } from "./exit-codes.ts";
import type { ServeOptions } from "./gateway-settings.ts";
import { collect, days, duration, keyName, many, requestKey, wholeNumber } from "./option-values.ts";

/** Options that every command takes. */
export interface GlobalOptions {
  readonly address: string;
  readonly ca?: string;
  readonly tlsServerName?: string;
  /** A file. */
  readonly apiKey?: string;
  readonly output: "text" | "json";
  /** False with `--no-color`. */
  readonly color: boolean;
}

/** Runs what the command line asked for. */
export interface Actions {
  /** A command that talks to a gateway, or looks for one. */
  client(globals: GlobalOptions, run: (context: CommandContext) => Promise<ExitCode>): Promise<void>;
  /** The gateway itself. */
  serve(globals: GlobalOptions, options: ServeOptions): Promise<void>;
}

/** What a command line is made of. */
export interface ProgramParts {
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
  readonly actions: Actions;
  /** Where help and the version go. */
  readonly writeOut: (text: string) => void;
  /** Where complaints about the command line go. */
  readonly writeErr: (text: string) => void;
}

/**
 * The command line. Commands are loaded when they run, so that none waits for what another needs. Parsing throws
 * CommanderError, with its text written already, for a wrong command line and after help or version.
 */
export function createProgram(parts: ProgramParts): Command {
  const { actions, env } = parts;
  const program = new Command("toolgate")
    // First, since a command takes over these settings from its parent when it is made.
    .exitOverride()
    .configureOutput({ writeOut: parts.writeOut, writeErr: parts.writeErr })
    .description("The tool plane for AI agents: declare a tool once, list it, call it and stream it over gRPC.")
    .version(parts.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .addOption(
      new Option(
        "--address <host:port>",
        "gateway to talk to, also https://host:port or unix:path; also TOOLGATE_ADDRESS",
      ).default(env.TOOLGATE_ADDRESS || DEFAULT_ADDRESS),
    )
    .addOption(
      new Option("--ca <file>", "certificates to trust over https, in PEM; also TOOLGATE_CA").default(
        env.TOOLGATE_CA || undefined,
      ),
    )
    .option("--tls-server-name <name>", "name that the gateway's certificate is for, if not the address's")
    .option("--api-key <file>", "file with the API key to show; or the key itself in TOOLGATE_API_KEY")
    .addOption(new Option("--output <format>", "for people or for programs").choices(["text", "json"]).default("text"))
    .option("--no-color", "no colours; also NO_COLOR")
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(add --help for the options)")
    .showSuggestionAfterError(true)
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 the tool failed, 2 wrong usage or arguments, 3 not found, 4 no gateway,\n" +
        "5 upstream or network, 6 out of time, 7 secret or credential, 8 refused, 9 the tool asks for input,\n70 internal, 130 interrupted.",
    );
  const tool = program.command("tool").description("register, list and call tools");
  addList(tool, actions);
  addGet(tool, actions);
  addCall(tool, actions);
  addRegister(tool, actions);
  addUnregister(tool, actions);
  addResult(program, actions);
  addKeys(program, actions);
  addLogin(program, actions);
  addServe(program, actions);
  addLogs(program, actions);
  addExplain(program, actions);
  addDoctor(program, actions);
  return program;
}

function addList(tool: Command, actions: Actions): void {
  tool
    .command("list")
    .description("list tools, and what is wrong with declarations")
    .option("--name <glob>", "only names that match (* and ?), repeatable", collect)
    .option("--state <state>", "only active, degraded, unavailable or disabled, repeatable", collect)
    .option("--kind <kind>", "only http, script, mcp, ..., repeatable", collect)
    .option("--label <key=value>", "only with this label, repeatable", collect)
    .option("--toolset <name>", "only of this toolset, repeatable", collect)
    .action((options: ToolListOptions, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { listTools } = await import("./commands/tool-list.ts");
        return listTools(options, context);
      }),
    );
}

function addGet(tool: Command, actions: Actions): void {
  tool
    .command("get")
    .description("show one tool with its parameters")
    .argument("<name>", "name or alias")
    .action((name: string, _options: unknown, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { getTool } = await import("./commands/tool-get.ts");
        return getTool(name, context);
      }),
    );
}

function addCall(tool: Command, actions: Actions): void {
  tool
    .command("call")
    .description("call a tool and print its result")
    .argument("<name>", "name or alias")
    .option("--param <name=value>", "an argument; @file reads its value, @@ stands for @; repeatable", collect)
    .option("--json <json>", "arguments as one JSON object; @file reads it, - reads stdin")
    .option("--stream", "print output as it appears")
    .option("--explain", "also print the upstream's address, headers and status")
    .option("--validate-only", "check the call but do not reach the upstream")
    .option("--continue <state>", "go on with a call whose tool asked for input; needs --input")
    .option("--input <json>", "the answers by id, as one JSON object; @file reads it, - reads stdin")
    .option("--question <text>", "what is to be known: steers what is kept of a result that is too long")
    .option("--timeout <duration>", "longest time, such as 10s or 1m30s", duration)
    .option(
      "--request-id <key>",
      "a key of yours: however often it is called with it, the call counts once",
      requestKey,
    )
    .action((name: string, flags: CallFlags, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { param = [], timeout, ...rest } = flags;
        const { callTool } = await import("./commands/tool-call.ts");
        return callTool(name, { ...rest, params: param, timeoutMs: timeout }, context);
      }),
    );
}

type CallFlags = Omit<CallCommandOptions, "params" | "timeoutMs"> & {
  readonly param?: readonly string[];
  readonly timeout?: number;
};

function addRegister(tool: Command, actions: Actions): void {
  tool
    .command("register")
    .description("register a declaration with a running gateway; the tool can be called at once")
    .requiredOption("-f, --file <path>", "the declaration, YAML or (*.json) JSON; - reads stdin")
    .option("--lease <duration>", "let it lapse after this long unless it is registered again", duration)
    .option("--validate-only", "check the declaration but change nothing")
    .option("--must-not-exist", "fail if the name is taken")
    .option("--etag <etag>", "replace only this version")
    .action((flags: RegisterFlags, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { lease, ...rest } = flags;
        const { registerTool } = await import("./commands/tool-register.ts");
        return registerTool({ ...rest, leaseMs: lease }, context);
      }),
    );
}

interface RegisterFlags extends Omit<RegisterCommandOptions, "leaseMs"> {
  readonly lease?: number;
}

function addUnregister(tool: Command, actions: Actions): void {
  tool
    .command("unregister")
    .description("remove a tool that was registered with `tool register`")
    .argument("<name>", "name")
    .option("--etag <etag>", "remove only this version")
    .option("--allow-missing", "succeed when it is gone already")
    .action((name: string, options: UnregisterCommandOptions, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { unregisterTool } = await import("./commands/tool-unregister.ts");
        return unregisterTool(name, options, context);
      }),
    );
}

function addResult(program: Command, actions: Actions): void {
  const result = program.command("result").description("read on in results that were too long, by their handle");
  result
    .command("read")
    .description("print a part of a kept result")
    .argument("<handle>", "result://..., as it stands in the shortened result")
    .option("--path <path>", "where in JSON, such as data.items[0] or /data/items/0")
    .option("--rows", "rows of a list, of JSON lines or of a table")
    .option("--column <name>", "only this column of the rows, repeatable", collect)
    .option("--lines", "lines of a text")
    .option("--bytes", "bytes, printed as base64")
    .option("--offset <number>", "first entry, row or byte, from 0; first line, from 1", wholeNumber)
    .option("--limit <number>", "most entries, rows, lines or bytes", wholeNumber)
    .option("--max-length <number>", "most characters, 100 to 200000", wholeNumber)
    .option("--cursor <cursor>", "go on after the page that came with it")
    .action((handle: string, options: ReadCommandOptions, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { readKept } = await import("./commands/result-read.ts");
        return readKept(handle, options, context);
      }),
    );
  result
    .command("search")
    .description("print the places of a kept result where something stands")
    .argument("<handle>", "result://..., as it stands in the shortened result")
    .argument("[pattern]", "what to look for")
    .option("--regex", "the pattern is a regular expression (RE2 syntax)")
    .option("--ignore-case", "upper and lower case are alike")
    .option("--limit <number>", "most places", wholeNumber)
    .option("--max-length <number>", "most characters, 100 to 200000", wholeNumber)
    .option("--cursor <cursor>", "go on after the page that came with it")
    .action((handle: string, pattern: string | undefined, options: SearchCommandOptions, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { searchKept } = await import("./commands/result-read.ts");
        return searchKept(handle, pattern, options, context);
      }),
    );
}

function addKeys(program: Command, actions: Actions): void {
  const key = program.command("key").description("make, list and revoke API keys, where the gateway keeps its state");
  const subcommand = (name: string, description: string): Command =>
    key
      .command(name)
      .description(description)
      .option("--config <file>", "gateway.yaml, found as by serve")
      .option("--state <folder>", "the gateway's state folder");
  subcommand("create", "make a key and print it, once")
    .requiredOption("--name <name>", "whose it is: the caller is key:NAME", keyName)
    .option("--role <role>", "a role of its holder, repeatable", collect)
    .option("--expires <duration>", "how long it is valid, such as 12h or 90d", days)
    .action((flags: KeyFlags, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { role = [], expires, ...rest } = flags;
        const { createKey } = await import("./commands/key.ts");
        return createKey({ ...rest, roles: role, expiresMs: expires }, context);
      }),
    );
  subcommand("list", "list keys, without what they are").action((flags: KeyPlace, command: Command) =>
    actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
      const { listKeys } = await import("./commands/key.ts");
      return listKeys(flags, context);
    }),
  );
  subcommand("revoke", "refuse a key from now on, or all keys of a name")
    .argument("<id-or-name>", "id or name")
    .action((idOrName: string, flags: KeyPlace, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { revokeKeys } = await import("./commands/key.ts");
        return revokeKeys(idOrName, flags, context);
      }),
    );
}

interface KeyFlags extends KeyPlace {
  readonly name: string;
  readonly role?: readonly string[];
  readonly expires?: number;
}

function addLogin(program: Command, actions: Actions): void {
  const subcommand = (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .argument("<server>", "name of the server's declaration")
      .option("--config <file>", "gateway.yaml, found as by serve")
      .option("--state <folder>", "the gateway's state folder");
  subcommand("login", "log in at an MCP server that needs a person (OAuth), where the gateway keeps its state")
    .option("--open", "open the address in the browser, by BROWSER or the system's way")
    .option("--paste", "the browser runs on another machine: take the address that it ends at from stdin")
    .option("--timeout <duration>", "how long the person may take", duration, 600_000)
    .action((server: string, { timeout, ...flags }: LoginFlags, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { login } = await import("./commands/login.ts");
        return login(server, { ...flags, timeoutMs: timeout }, context);
      }),
    );
  subcommand("logout", "forget the login at an MCP server, and give its tokens back").action(
    (server: string, flags: LoginPlace, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { logout } = await import("./commands/login.ts");
        return logout(server, flags, context);
      }),
  );
}

type LoginFlags = Omit<LoginOptions, "timeoutMs"> & { readonly timeout: number };

function addServe(program: Command, actions: Actions): void {
  program
    .command("serve")
    .description("run the gateway")
    .option(
      "--config <file>",
      "gateway.yaml; default ./gateway.yaml, then ~/.toolgate/gateway.yaml, else built-in values",
    )
    .option("--tools <folder>", "watched folder of declarations")
    .option("--listen <host:port>", `where to listen, also unix:path; default ${DEFAULT_ADDRESS}`)
    .option("--state <folder>", "folder for what is registered over the service")
    .addOption(
      new Option("--log-level <level>", "how much to log").choices(["debug", "info", "warn", "error", "silent"]),
    )
    .option("--inject-faults", "put the `faults` of the settings into calls, for rehearsals")
    .action((options: ServeOptions, command: Command) =>
      actions.serve(command.optsWithGlobals<GlobalOptions>(), options),
    );
}

function addLogs(program: Command, actions: Actions): void {
  program
    .command("logs")
    .description("show what is on record of calls, where the gateway keeps its state")
    .option("--call <id>", "the whole chain of one call")
    .option("--session <id>", "only calls of this session")
    .option("--tool <name>", "only calls of this tool")
    .option("--audit", "what administrators did and who was refused, instead of calls")
    .option("--limit <n>", "how many, the latest", many, 100)
    .option("--follow", "go on with what comes")
    .option("--config <file>", "gateway.yaml, found as by serve")
    .option("--state <folder>", "the gateway's state folder")
    .action((options: LogsOptions, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { showLogs } = await import("./commands/logs.ts");
        return showLogs(options, context);
      }),
    );
}

function addExplain(program: Command, actions: Actions): void {
  program
    .command("explain")
    .description("show the policy in force for a tool and where each value comes from")
    .argument("<tool>", "name or alias")
    .action((name: string, _options: unknown, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { explainTool } = await import("./commands/explain.ts");
        return explainTool(name, context);
      }),
    );
}

function addDoctor(program: Command, actions: Actions): void {
  program
    .command("doctor")
    .description("examine this machine and the gateway, and say how to mend what is wrong")
    .option("--strict", "end with 1 for what is only worth a look too")
    .action((options: DoctorOptions, command: Command) =>
      actions.client(command.optsWithGlobals<GlobalOptions>(), async (context) => {
        const { examine } = await import("./commands/doctor.ts");
        return examine(options, context);
      }),
    );
}
