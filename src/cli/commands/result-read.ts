import type { ReadResultOptions, ResultPage, ResultQuery } from "../../../clients/typescript/src/index.ts";
import { CliError } from "../cli-error.ts";
import { type CommandContext, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { pageJson } from "../json-output.ts";

/** Options of `result read` and `result search` alike. */
interface PageOptions {
  readonly cursor?: string;
  readonly maxLength?: number;
}

/** Options of `result read`. */
export interface ReadCommandOptions extends PageOptions {
  readonly path?: string;
  readonly rows?: boolean;
  readonly column?: readonly string[];
  readonly lines?: boolean;
  readonly bytes?: boolean;
  readonly offset?: number;
  readonly limit?: number;
}

/** Options of `result search`. */
export interface SearchCommandOptions extends PageOptions {
  readonly regex?: boolean;
  readonly ignoreCase?: boolean;
  readonly limit?: number;
}

/** Prints a page of a kept result. */
export function readKept(handle: string, options: ReadCommandOptions, context: CommandContext): Promise<ExitCode> {
  return printPage(handle, { ...pageOptions(options), query: queryOf(options) }, context);
}

/** Prints the places of a kept result where something stands. */
export function searchKept(
  handle: string,
  pattern: string | undefined,
  options: SearchCommandOptions,
  context: CommandContext,
): Promise<ExitCode> {
  if (pattern === undefined && options.cursor === undefined) {
    throw new CliError(EXIT.usage, "nothing to look for", { mend: "Give a pattern after the handle, or --cursor." });
  }
  const { regex = false, ignoreCase = false, limit = 0 } = options;
  const query = pattern === undefined ? undefined : { search: { pattern, regex, ignoreCase, limit } };
  return printPage(handle, { ...pageOptions(options), query }, context);
}

function pageOptions({ cursor, maxLength }: PageOptions): ReadResultOptions {
  return { cursor, maxLength };
}

function queryOf(options: ReadCommandOptions): ResultQuery | undefined {
  const { path = "", offset, limit = 0 } = options;
  const from = offset ?? 0;
  switch (kindOf(options)) {
    case "rows":
      return { rows: { columns: options.column ?? [], offset: from, limit, path } };
    case "lines":
      return { lines: { start: offset ?? 1, count: limit } };
    case "bytes":
      return { bytes: { offset: from, length: limit } };
    case undefined:
      return asksForPart(options) ? { json: { path, offset: from, limit } } : undefined;
  }
}

function asksForPart({ path = "", offset, limit = 0 }: ReadCommandOptions): boolean {
  return path !== "" || offset !== undefined || limit !== 0;
}

function kindOf({ rows, column = [], lines, bytes }: ReadCommandOptions): "rows" | "lines" | "bytes" | undefined {
  const asked = { rows: rows === true || column.length > 0, lines: lines === true, bytes: bytes === true };
  const [kind, ...others] = (["rows", "lines", "bytes"] as const).filter((each) => asked[each]);
  if (others.length === 0) return kind;
  throw new CliError(EXIT.usage, "--rows, --lines and --bytes exclude each other", { mend: "Give one of them." });
}

async function printPage(handle: string, options: ReadResultOptions, context: CommandContext): Promise<ExitCode> {
  using connection = await connect(context, context.surroundings.env);
  const page = await connection.client.readResult(handle, { ...options, signal: context.signal });
  if (context.json) await writeJson(pageJson(page), context);
  else await writePage(page, context);
  return EXIT.ok;
}

async function writePage({ text, data, cursor }: ResultPage, { out, err, signal }: CommandContext): Promise<void> {
  const shown = data === undefined ? text : Buffer.from(data).toString("base64");
  await out.write(shown.endsWith("\n") || shown === "" ? shown : `${shown}\n`, signal);
  if (cursor !== undefined) err.line(err.paint("dim", `more: --cursor ${cursor}`));
}
