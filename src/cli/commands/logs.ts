import { recordFolder } from "../../config/record-settings.ts";
import type { JsonObject } from "../../core/json.ts";
import { isJsonObject, ownValue, parseJson } from "../../core/json.ts";
import type { RecordLog } from "../../core/record-files.ts";
import { systemReason } from "../arguments.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { readConfig } from "../gateway-settings.ts";
import { recordLines } from "../record-lines.ts";
import { actText, callText, chainLines } from "../render-record.ts";
import type { KeyPlace } from "./key.ts";

/** Options of `logs`. */
export interface LogsOptions extends KeyPlace {
  readonly call?: string;
  readonly session?: string;
  readonly tool?: string;
  readonly audit?: boolean;
  readonly limit: number;
  readonly follow?: boolean;
}

/** A line of a log. */
interface Line {
  readonly text: string;
  readonly record: JsonObject;
}

/** Prints what is on record. @throws CliError where the files cannot be read, or there is no such call. */
export async function showLogs(options: LogsOptions, context: CommandContext): Promise<ExitCode> {
  const { config, state } = options;
  const place = { ...(config === undefined ? {} : { config }), ...(state === undefined ? {} : { state }) };
  const found = await readConfig(place, context.surroundings);
  const folder = recordFolder(found.config);
  try {
    if (options.call !== undefined) await showCall(options.call, folder, options, context);
    else await showList(options, folder, context);
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    throw new CliError(EXIT.failed, `cannot read the records in ${folder}: ${systemReason(error)}`, { cause: error });
  }
}

/** The latest lines, and with `follow` those to come. */
async function showList(options: LogsOptions, folder: string, context: CommandContext): Promise<void> {
  const log: RecordLog = options.audit === true ? "audit" : "gateway";
  const render = log === "audit" ? actText : callText;
  const show = ({ text, record }: Line): Promise<void> =>
    context.out.write(`${context.json ? text : render(record)}\n`, context.signal);
  const latest: Line[] = [];
  let isCaughtUp = false;
  for await (const text of recordLines(folder, log, { follow: options.follow === true, signal: context.signal })) {
    if (text === undefined) {
      isCaughtUp = true;
      for (const line of latest.splice(0)) await show(line);
      continue;
    }
    const record = wantedRecord(text, options);
    if (record === undefined) continue;
    if (isCaughtUp) await show({ text, record });
    else if (latest.push({ text, record }) > options.limit) latest.shift();
  }
}

/** What all logs know of one call; with `follow` it is waited for. */
async function showCall(
  call: string,
  folder: string,
  { follow = false }: LogsOptions,
  context: CommandContext,
): Promise<void> {
  const { signal, out, json } = context;
  const lines = async (log: RecordLog, waits: boolean): Promise<readonly Line[]> => {
    const found: Line[] = [];
    for await (const text of recordLines(folder, log, { follow: waits, signal })) {
      const record = text === undefined ? undefined : wantedRecord(text, { call });
      if (text !== undefined && record !== undefined) found.push({ text, record });
      if (text === undefined && found.length > 0) break;
    }
    return found;
  };
  const calls = await lines("gateway", follow);
  const said = await lines("session", false);
  const all = [...said, ...calls];
  if (all.length === 0) {
    throw new CliError(EXIT.notFound, `no call "${call}" is on record in ${folder}`, {
      mend: "`toolgate logs` lists the latest. Calls are on record while `records.gateway` is true, for `records.retention`.",
    });
  }
  const texts = json ? all.map(({ text }) => text) : chainLines(...records(calls, said));
  await out.write(`${texts.join("\n")}\n`, signal);
}

function records(...logs: readonly (readonly Line[])[]): [readonly JsonObject[], readonly JsonObject[]] {
  const [calls = [], said = []] = logs.map((lines) => lines.map(({ record }) => record));
  return [calls, said];
}

/** The record of a line that is asked for. A line that a crash tore is none. */
function wantedRecord(
  text: string,
  { call, session, tool }: Pick<LogsOptions, "call" | "session" | "tool">,
): JsonObject | undefined {
  // Most lines are other calls', and need not be parsed.
  if (call !== undefined && !text.includes(call)) return undefined;
  const record = parsed(text);
  if (record === undefined) return undefined;
  const is = (key: string, value: string | undefined): boolean =>
    value === undefined || ownValue(record, key) === value;
  return is("callId", call) && is("sessionId", session) && is("tool", tool) ? record : undefined;
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    // Half a line.
    return undefined;
  }
}
