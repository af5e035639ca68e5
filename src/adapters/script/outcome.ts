import type { ContentPart, ToolFailure, UpstreamResult } from "../../core/call.ts";
import type { Effect } from "../../core/effect.ts";
import { type JsonValue, parseJson } from "../../core/json.ts";
import { textBeginning, textEnd } from "../../core/text.ts";
import type { ProgramExit } from "../shared/launcher/frames.ts";
import { type DecodedOutput, decodeOutput } from "./output-decoder.ts";
import type { ScriptConfig } from "./script-config.ts";

/** Most characters of the error output that a failure shows, from its end. */
const MAX_WORDS = 1_500;

/** A shell tells by 128 and its number which signal ended a program. */
const SIGNAL_CODE = 128;

/** How a program ended, and what it left. */
export interface ProgramOutcome {
  readonly exit: ProgramExit;
  /** The end of its error output. */
  readonly errors: Buffer;
}

/** The result of a program whose output was read as a whole. */
export function wholeResult(config: ScriptConfig, outcome: ProgramOutcome, bytes: Buffer): UpstreamResult {
  const output = decodeOutput(bytes, config.encoding);
  const failure = failureOf(config, outcome);
  if (failure !== undefined) {
    const value = output.flawed ? undefined : structured(output.text);
    return {
      ...closing(config, outcome),
      ...(value === undefined ? textOnly(config, output) : jsonOnly(value)),
      failure,
    };
  }
  if (output.text.trim() === "") return { ...closing(config, outcome), content: [] };
  if (config.settings.format === "text") return { ...closing(config, outcome), ...textOnly(config, output) };
  if (config.settings.format === "json") return jsonResult(config, outcome, output);
  const value = output.flawed ? undefined : structured(output.text);
  return { ...closing(config, outcome), ...(value === undefined ? textOnly(config, output) : jsonOnly(value)) };
}

/** The result of a program whose output was passed on already; `flawed`: not all of it was text. */
export function streamedResult(config: ScriptConfig, outcome: ProgramOutcome, flawed: boolean): UpstreamResult {
  const failure = failureOf(config, outcome);
  const result = { ...closing(config, outcome), content: flawed ? [flawMark(config)] : [] };
  return failure === undefined ? result : { ...result, failure };
}

/** The result of a call whose worker ended instead of an answer. */
export function lostWorkerResult(config: ScriptConfig, outcome: ProgramOutcome): UpstreamResult {
  const how = `the worker ${endOf(outcome.exit)} before it answered`;
  return {
    ...closing(config, outcome),
    effect: config.readOnly ? "none" : "unknown",
    content: [],
    failure: { ...exitFailure(config, outcome, how), upstreamFault: true },
  };
}

/** What a program that is over says about effects: success is done, failure may have done a part. */
function effectOf(config: ScriptConfig, { exit }: ProgramOutcome): Effect {
  if (config.readOnly) return "none";
  return isSuccess(config, exit) ? "committed" : "unknown";
}

/** The code a shell would give. */
export function exitCodeOf({ code, signal }: ProgramExit, signals: Readonly<Record<string, number>>): number {
  return code ?? SIGNAL_CODE + (signals[signal ?? ""] ?? 0);
}

/** The end of error output in one line. */
function errorWords(errors: Buffer, encoding: string): string {
  const line = decodeOutput(errors, encoding).text.replace(/\s+/g, " ").trim();
  return textEnd(line, MAX_WORDS);
}

function closing(config: ScriptConfig, outcome: ProgramOutcome): Pick<UpstreamResult, "upstreamCode" | "effect"> {
  const { code } = outcome.exit;
  return { ...(code === null ? {} : { upstreamCode: code }), effect: effectOf(config, outcome) };
}

function isSuccess({ successCodes }: ScriptConfig, { code }: ProgramExit): boolean {
  return code !== null && successCodes.has(code);
}

function failureOf(config: ScriptConfig, outcome: ProgramOutcome): ToolFailure | undefined {
  if (isSuccess(config, outcome.exit)) return undefined;
  return exitFailure(config, outcome, `the program ${endOf(outcome.exit)}`);
}

function endOf({ code, signal }: ProgramExit): string {
  return code === null ? `was ended by ${signal ?? "a signal"}` : `ended with exit code ${code}`;
}

function exitFailure(config: ScriptConfig, { exit, errors }: ProgramOutcome, how: string): ToolFailure {
  const words = errorWords(errors, config.encoding);
  return {
    reason: "EXIT_CODE",
    message: `${config.tool.name}: ${how}${words === "" ? "" : `: ${words}`}`,
    upstreamCode: exit.code ?? undefined,
    retryable: false,
    upstreamFault: exit.code === null,
  };
}

function jsonResult(config: ScriptConfig, outcome: ProgramOutcome, output: DecodedOutput): UpstreamResult {
  const problem = output.flawed ? notText(config) : undefined;
  const value = problem === undefined ? parsed(output.text) : undefined;
  if (value !== undefined) return { ...closing(config, outcome), ...jsonOnly(value) };
  const why =
    problem ?? `expected JSON, got other text; it begins ${JSON.stringify(textBeginning(output.text.trim(), 60))}`;
  const failure: ToolFailure = {
    reason: "UPSTREAM_BAD_RESPONSE",
    message: `${config.tool.name}: the program's output cannot be read: ${why}`,
    upstreamCode: outcome.exit.code ?? undefined,
    retryable: false,
    upstreamFault: true,
  };
  return { ...closing(config, outcome), content: [], failure };
}

function jsonOnly(value: JsonValue): Pick<UpstreamResult, "content" | "value"> {
  return { content: [], value };
}

function textOnly(config: ScriptConfig, { text, flawed }: DecodedOutput): Pick<UpstreamResult, "content"> {
  const content: ContentPart[] = text === "" ? [] : [{ type: "text", text }];
  return { content: flawed ? [...content, flawMark(config)] : content };
}

function flawMark(config: ScriptConfig): ContentPart {
  return { type: "text", text: `[${notText(config)}]` };
}

function notText({ encoding }: ScriptConfig): string {
  return encoding === "utf-8"
    ? "output is not valid UTF-8, set encoding"
    : `output is not valid ${encoding}, correct encoding`;
}

/** A JSON object or list; anything else a program prints is text. */
function structured(text: string): JsonValue | undefined {
  return /^\s*[[{]/.test(text) ? parsed(text) : undefined;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
