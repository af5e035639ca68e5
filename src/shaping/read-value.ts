import type { ContentPart, UpstreamResult } from "../core/call.ts";
import { isJsonObject, type JsonValue, jsonEqual, ownValue, parseJson } from "../core/json.ts";
import type { ResultRules } from "../core/shaper.ts";
import { looksInside } from "./result-rules.ts";

/**
 * Has a text count as the answer's JSON where the rules look into that (`format: json`, a field, `fields`, `template`),
 * the upstream gave no other, and it is the only text.
 */
export function createJsonOfText(rules: ResultRules): (result: UpstreamResult) => UpstreamResult {
  if (rules.format !== "json" && !looksInside(rules)) return (result) => result;
  return (result) => (result.value === undefined && result.failure === undefined ? withJsonOfText(result) : result);
}

/**
 * Settles what to give of an answer that has both JSON and text: a text that says the same as the JSON, or as the one
 * string in it, is left out; `format: text` takes the text and leaves out the JSON.
 */
export function createOneOfBoth(rules: ResultRules): (result: UpstreamResult) => UpstreamResult {
  return (result) => {
    if (result.value === undefined || result.failure !== undefined || !result.content.some(isText)) return result;
    return rules.format === "text" ? withoutValue(result) : withoutRepetition(result, result.value);
  };
}

function withJsonOfText(result: UpstreamResult): UpstreamResult {
  const texts = result.content.filter(isText);
  const value = texts.length === 1 ? jsonIn(texts[0]?.text ?? "") : undefined;
  return value === undefined ? result : { ...result, value, content: result.content.filter((part) => !isText(part)) };
}

function withoutValue({ value: _value, ...rest }: UpstreamResult): UpstreamResult {
  return rest;
}

function withoutRepetition(result: UpstreamResult, value: JsonValue): UpstreamResult {
  return { ...result, content: result.content.filter((part) => !isText(part) || !saysSame(part.text, value)) };
}

function saysSame(text: string, value: JsonValue): boolean {
  const only = onlyString(value);
  if (only !== undefined && only.trim() === text.trim()) return true;
  const said = jsonIn(text);
  return said !== undefined && jsonEqual(said, value);
}

/** A string, or the one that an object holds and nothing else. */
function onlyString(value: JsonValue): string | undefined {
  if (typeof value === "string") return value;
  if (!isJsonObject(value)) return undefined;
  const [name, ...more] = Object.keys(value);
  const only = name === undefined || more.length > 0 ? undefined : ownValue(value, name);
  return typeof only === "string" ? only : undefined;
}

/** The JSON that a text is; `undefined`: it is none. */
export function jsonIn(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isText(part: ContentPart): part is Extract<ContentPart, { type: "text" }> {
  return part.type === "text";
}
