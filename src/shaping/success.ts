import type { Invoke, ToolFailure, UpstreamEvent, UpstreamResult } from "../core/call.ts";
import type { Effect } from "../core/effect.ts";
import { isJsonObject, type JsonObject, type JsonValue, jsonEqual, ownValue, stringifyJson } from "../core/json.ts";
import type { ResultRules } from "../core/shaper.ts";
import { textBeginning, wellFormed } from "../core/text.ts";
import { type FieldFound, type FieldPath, followPath, parseFieldPath } from "./field-path.ts";
import { createJsonOfText } from "./read-value.ts";
import { createRedactFields } from "./redact-fields.ts";

/** Judges a result that the upstream gave as a success: the same one, or the failure it is. */
export type Judge = (result: UpstreamResult) => UpstreamResult;

/** Fields in which APIs put their words about what went wrong, by habit. */
const WORDS = ["message", "msg", "error_message", "errmsg", "error_description", "error", "detail", "reason"];

/** Most characters of the upstream's words. */
const MAX_WORDS = 500;

/** Most names listed in a message. */
const MAX_NAMES = 10;

/**
 * The success rule of a tool: the field must be there and equal the value. Where only a field for errors is named, an
 * answer that holds something there is a failure. A failure keeps of the answer what
 * `data_field` names, unless it is null. An answer without content by its status is a success. An effect the upstream's status confirmed is unknown when its answer says no.
 */
export function createJudge(tool: string, rules: ResultRules): Judge {
  const path = rules.successField === undefined ? undefined : parseFieldPath(rules.successField);
  const readJson = createJsonOfText(rules);
  // Before anything looks into the answer, so that what is not to be shown is in no message and no step either.
  const redactFields = createRedactFields(rules.redact?.fields ?? []);
  const read: Judge = (result) => redactFields(readJson(result));
  const errorPath = rules.errorField === undefined ? undefined : parseFieldPath(rules.errorField);
  if (path === undefined) return errorPath === undefined ? read : createErrorJudge(tool, errorPath, read);
  const dataPath = rules.dataField === undefined ? undefined : parseFieldPath(rules.dataField);
  return (given) => {
    const result = read(given);
    if (result.failure !== undefined || result.needsInput !== undefined) return result;
    if (result.value === undefined && saysNothing(result)) return result;
    if (result.value === undefined) return failed(result, missing(tool, path, undefined, result), undefined);
    const got = followPath(result.value, path);
    if (!got.found) return failed(result, missing(tool, path, got, result), undefined);
    if (isSuccess(got.value, rules)) return result;
    const data = dataPath === undefined ? undefined : followPath(result.value, dataPath);
    const words = wordsAt(result.value, errorPath) || wordsOf(result.value, path);
    const said = `${path.text} is ${brief(got.value)}, success is ${brief(rules.successValue)}`;
    const message = saidNo(tool, words, said);
    return failed(result, failure("TOOL_FAILED", message, result), data?.found === true ? data.value : undefined);
  };
}

/** An answer that holds something in its field for errors is a failure; null, false, and what is empty are nothing. */
function createErrorJudge(tool: string, path: FieldPath, read: Judge): Judge {
  return (given) => {
    const result = read(given);
    const got = result.failure === undefined && result.value !== undefined ? followPath(result.value, path) : undefined;
    if (got?.found !== true || isNothing(got.value)) return result;
    const words = result.value === undefined ? "" : wordsAt(result.value, path);
    const message = saidNo(tool, words, `${path.text} is ${brief(got.value)}`);
    return failed(result, failure("TOOL_FAILED", message, result), undefined);
  };
}

function saidNo(tool: string, words: string, said: string): string {
  return `${tool}: the tool answered that it failed${words === "" ? "" : `: ${words}`} (${said})`;
}

function isNothing(value: JsonValue): boolean {
  if (value === null || value === false || value === "" || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}

function isSuccess(value: JsonValue, { successValue, loose }: ResultRules): boolean {
  if (jsonEqual(value, successValue)) return true;
  if (loose !== true || typeof value === "object" || typeof successValue === "object") return false;
  return String(value).toLowerCase() === String(successValue).toLowerCase();
}

/** The upstream's words in the field declared for them: a text, or the message of an object. */
function wordsAt(answer: JsonValue, path: FieldPath | undefined): string {
  const got = path === undefined ? undefined : followPath(answer, path);
  if (got?.found !== true) return "";
  const { value } = got;
  const words = typeof value === "string" ? value : isJsonObject(value) ? wordsIn(value, undefined) : undefined;
  return words === undefined ? "" : shortWords(words, MAX_WORDS);
}

/** 204 and 205 are successes that by definition have no body to look into. Source: RFC 9110, 15.3.5 and 15.3.6. */
function saysNothing({ upstreamCode, content }: UpstreamResult): boolean {
  return content.length === 0 && (upstreamCode === 204 || upstreamCode === 205);
}

/**
 * Applies a success rule to an adapter, inside the pipeline, so that its steps see a tool's own no as the failure it
 * is. The shaper applies it again, which changes nothing.
 */
export function judgeResults(judge: Judge, invoke: Invoke): Invoke {
  return async function* (call, context): AsyncGenerator<UpstreamEvent, void, undefined> {
    for await (const event of invoke(call, context)) {
      const judged = event.type === "upstream-result" && !call.validateOnly;
      yield judged ? { type: "upstream-result", result: judge(event.result) } : event;
    }
  };
}

/** The failure of an answer that lacks a field; `found` `undefined`: it has no JSON at all. */
export function missing(
  tool: string,
  path: FieldPath,
  found: Extract<FieldFound, { found: false }> | undefined,
  result: UpstreamResult,
): ToolFailure {
  const there = found === undefined ? noJson(result) : describe(found);
  return failure("FIELD_MISSING", `${tool}: the answer lacks the field "${path.text}": ${there}`, result);
}

function failure(reason: "TOOL_FAILED" | "FIELD_MISSING", message: string, result: UpstreamResult): ToolFailure {
  return { reason, message, upstreamCode: result.upstreamCode, retryable: false, upstreamFault: false };
}

function failed(result: UpstreamResult, why: ToolFailure, data: JsonValue | undefined): UpstreamResult {
  const { value: _answer, content: _content, ...rest } = result;
  const effect: Effect = result.effect === "committed" ? "unknown" : result.effect;
  return {
    ...rest,
    ...(data === undefined || data === null ? {} : { value: data }),
    content: [],
    effect,
    failure: why,
  };
}

function noJson({ content }: UpstreamResult): string {
  return content.length === 0 ? "it is empty" : "it is no JSON";
}

function describe({ at, value }: { readonly at: string; readonly value: JsonValue }): string {
  const what = at === "" ? "it" : `"${at}"`;
  if (value === null) return `${what} is null`;
  if (Array.isArray(value)) return `${what} is a list of ${value.length}`;
  if (!isJsonObject(value)) return `${what} is a ${typeof value === "bigint" ? "number" : typeof value}`;
  const names = Object.keys(value);
  const shown = names.slice(0, MAX_NAMES).map((name) => shortWords(name, 40));
  const more = names.length > MAX_NAMES ? `, … (${names.length} in all)` : "";
  return names.length === 0 ? `${what} has no fields` : `${what} has ${shown.join(", ")}${more}`;
}

/** The upstream's words beside the success field, or at the top of the answer; empty where there are none. */
function wordsOf(answer: JsonValue, path: FieldPath): string {
  const beside = followPath(answer, { text: path.text, steps: path.steps.slice(0, -1) });
  for (const place of [beside.found ? beside.value : null, answer]) {
    const words = isJsonObject(place) ? wordsIn(place, path.steps.at(-1)) : undefined;
    if (words !== undefined) return shortWords(words, MAX_WORDS);
  }
  return "";
}

/** On one line, with `…` where they were cut: a redactor has to know that a secret may have been cut with them. */
function shortWords(words: string, max: number): string {
  const line = words.replace(/\s+/g, " ").trim();
  return wellFormed(textBeginning(line, max));
}

function wordsIn(object: JsonObject, except: string | number | undefined): string | undefined {
  for (const name of WORDS) {
    const value = name === except ? undefined : ownValue(object, name);
    const words = value !== undefined && isJsonObject(value) ? ownValue(value, "message") : value;
    if (typeof words === "string" && words.trim() !== "") return words;
  }
  return undefined;
}

function brief(value: JsonValue): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  const text = stringifyJson(typeof value === "string" ? shortWords(value, 60) : value);
  return wellFormed(text);
}
