import type { UpstreamResult } from "../../core/call.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { neededInput } from "./input.ts";
import { readContent } from "./result-content.ts";
import { type ResultFacts, toolErrorResult, unreadableResult } from "./result-error.ts";

/**
 * Reads what a server answered to `tools/call`, of any revision, as it came: `structuredContent` is the value, all
 * parts of `content` stand beside it (shaping leaves out what says the same twice), `isError` is a failure,
 * `input_required` a question. A server's output schema is not looked at here.
 */
export function callResult(raw: JsonValue | undefined, facts: ResultFacts): UpstreamResult {
  if (raw === undefined || !isJsonObject(raw)) {
    return unreadableResult(raw, "the server's result is no JSON object", facts);
  }
  const needsInput = ownValue(raw, "resultType") === "input_required" ? neededInput(raw) : undefined;
  if (needsInput !== undefined) return { content: [], needsInput, effect: facts.readOnly ? "none" : "unknown" };
  const problem = unfinished(raw);
  if (problem !== undefined) return unreadableResult(raw, problem, facts);
  const { parts, notices } = readContent(ownValue(raw, "content"));
  const value = ownValue(raw, "structuredContent");
  const read = ownValue(raw, "isError") === true ? toolErrorResult(value, parts, facts) : success(value, parts, facts);
  return notices.length === 0 ? read : { ...read, notices };
}

function success(
  value: JsonValue | undefined,
  content: UpstreamResult["content"],
  { readOnly }: ResultFacts,
): UpstreamResult {
  return { ...(value === undefined ? {} : { value }), content, effect: readOnly ? "none" : "committed" };
}

/** Why an answer is no result of the tool's; `undefined` where it is one. */
function unfinished(raw: JsonObject): string | undefined {
  const type = ownValue(raw, "resultType");
  const task = ownValue(raw, "task");
  if (type === "task" || (task !== undefined && !Object.hasOwn(raw, "content"))) {
    return "the server made a task of the call, whose result is to be fetched later, which the gateway does not do";
  }
  if (type === undefined || type === "complete") return undefined;
  if (type === "input_required") return "the server asks for input in a form that the gateway does not know";
  return "the server's result is of a type the gateway does not know";
}
