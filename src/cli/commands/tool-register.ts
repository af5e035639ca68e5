import { ToolgateError } from "../../../clients/typescript/src/index.ts";
import { fileText } from "../arguments.ts";
import { CliError } from "../cli-error.ts";
import { type CommandContext, readStdin, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { toolJson } from "../json-output.ts";
import { plain } from "../terminal.ts";
import { stateWord } from "../words.ts";

/** Options of `tool register`. */
export interface RegisterCommandOptions {
  /** Path of the declaration; `-`: stdin. */
  readonly file: string;
  readonly leaseMs?: number | undefined;
  readonly validateOnly?: boolean;
  readonly mustNotExist?: boolean;
  readonly etag?: string | undefined;
}

/** Registers a declaration, or only checks it. */
export async function registerTool(options: RegisterCommandOptions, context: CommandContext): Promise<ExitCode> {
  const { file, ...settings } = options;
  const validateOnly = options.validateOnly === true;
  const text = file === "-" ? await readStdin(context) : await fileText(file, "--file");
  using connection = await connect(context, context.surroundings.env);
  const request = { ...settings, format: file.endsWith(".json") ? "json" : "yaml", signal: context.signal } as const;
  const { tools, revision, warnings } = await connection.client.register(text, request).catch((error: unknown) => {
    throw context.json ? error : withPlaces(error, file);
  });
  if (context.json) {
    await writeJson({ tools: tools.map(toolJson), revision, warnings, validateOnly }, context);
    return EXIT.ok;
  }
  for (const warning of warnings) context.err.line(`${context.err.paint("yellow", "warning:")} ${plain(warning)}`);
  for (const tool of tools) {
    const verdict = validateOnly ? "is a valid declaration; nothing was changed" : "is registered";
    const state = validateOnly ? "" : `: ${stateWord(tool.state)}, revision ${revision}`;
    context.err.line(`${tool.name} ${verdict}${state}`);
    if (!validateOnly && tool.stateReason !== "") context.err.line(`  ${plain(tool.stateReason)}`);
  }
  return EXIT.ok;
}

/** A refused declaration with its problems as `file:line:column: what`, which editors and terminals can follow. */
function withPlaces(error: unknown, file: string): unknown {
  if (!(error instanceof ToolgateError) || error.reason !== "DECLARATION_INVALID") return error;
  const name = file === "-" ? "stdin" : file;
  const places = error.violations.map(({ description }) => {
    const [, line, column, what] = /^line (\d+), column (\d+): (.*)$/s.exec(description) ?? [];
    return what === undefined ? `${name}: ${description}` : `${name}:${line}:${column}: ${what}`;
  });
  const mend = "Correct the places named; nothing was changed.";
  return new CliError(EXIT.refused, `${error.reason} the declaration is refused`, { places, mend, cause: error });
}
