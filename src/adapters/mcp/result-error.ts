import type { ContentPart, ToolFailure, UpstreamResult } from "../../core/call.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson } from "../../core/json.ts";

/** What reading an answer needs of the tool that gave it. */
export interface ResultFacts {
  /** The tool's name, for messages. */
  readonly tool: string;
  /** Whether a call surely changes nothing. */
  readonly readOnly: boolean;
}

/** An error as JSON-RPC has it. Source: https://www.jsonrpc.org/specification#error_object. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: JsonValue | undefined;
}

/** Codes of JSON-RPC with which a server refuses a request before it does anything for it. */
const REFUSALS: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602]);

/** How SDKs write an error into a text, some of them twice and more: the innermost code is the one that tells. */
const WRAPPED = /^(?:McpError: )?MCP error (-?\d{1,6}): ?/;

/** Fields in which servers put their words about what went wrong, by habit. */
const WORDS = ["message", "error", "error_message", "errorMessage", "detail", "details", "title", "reason", "text"];

/** Most code units of text that stand in a failure's message alone; a longer text stays in the content too. */
const MAX_MESSAGE_LENGTH = 2_000;

/** Nesting in which words are looked for. */
const MAX_WORDS_DEPTH = 3;

/**
 * What a server answered with an error of its protocol instead of a result. A code that refuses the request says that
 * nothing was done; of any other nobody knows.
 */
export function errorResult({ code, message, data = null }: RpcError, facts: ResultFacts): UpstreamResult {
  const said = unwrapped(message);
  const innermost = said.code ?? (isCode(code) ? code : undefined);
  const words = said.text === "" ? "the server answered with an error without words" : wordsOf(said.text);
  const reason = isRefusal(innermost) ? "UPSTREAM_REJECTED" : "UPSTREAM_ERROR";
  const read = failed(facts, { reason, words, origin: "protocol", code: innermost });
  const whole = isJsonObject(data) || isJsonArray(data) ? { ...read, value: data } : read;
  return isRefusal(code) ? { ...whole, effect: "none" } : whole;
}

/**
 * A result that says `isError`: its text is the failure's message, whatever form it has (plain, Markdown, JSON, an
 * error of the protocol once more in words). JSON stands as the value too; what is no text, or too long for a message,
 * stays in the content.
 */
export function toolErrorResult(
  value: JsonValue | undefined,
  content: readonly ContentPart[],
  facts: ResultFacts,
): UpstreamResult {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const text = texts.join("\n").trim();
  const { text: inner, code } = unwrapped(text);
  const parsed = jsonIn(inner);
  const words = wordsOf(inner) || wordsIn(value, 0) || "the tool reported an error and did not say which";
  const reason = isRefusal(code) ? "UPSTREAM_REJECTED" : "TOOL_FAILED";
  const read = failed(facts, { reason, words, origin: code === undefined ? "tool" : "protocol", code });
  // Where the text is the value, or the whole message, it need not stand there once more.
  const isTold = text.length <= MAX_MESSAGE_LENGTH || (value === undefined && parsed !== undefined);
  const whole = { ...read, content: isTold ? content.filter((part) => part.type !== "text") : content };
  const own = value ?? parsed;
  return own === undefined ? whole : { ...whole, value: own };
}

/** The failure of an answer that is no result. `value`: what came, so that it is not lost. */
export function unreadableResult(value: JsonValue | undefined, problem: string, facts: ResultFacts): UpstreamResult {
  const reason = "UPSTREAM_BAD_RESPONSE";
  const read = failed(facts, { reason, words: problem, origin: "protocol", code: undefined });
  return value === undefined ? read : { ...read, value };
}

/** A server's own no is no fault that a breaker counts, and nothing says that the same call will do better later. */
function failed(
  { tool, readOnly }: ResultFacts,
  failure: Pick<ToolFailure, "reason" | "origin"> & { readonly words: string; readonly code: number | undefined },
): UpstreamResult {
  const { reason, origin, words, code } = failure;
  return {
    content: [],
    failure: {
      reason,
      message: `${tool}: ${words}`,
      ...(origin === undefined ? {} : { origin }),
      upstreamCode: code,
      retryable: false,
      upstreamFault: false,
    },
    ...(code === undefined ? {} : { upstreamCode: code }),
    effect: readOnly ? "none" : "unknown",
  };
}

function isRefusal(code: number | undefined): boolean {
  return code !== undefined && REFUSALS.has(code);
}

/** Whether it is a number that clients take for a code; servers send others. */
function isCode(code: number): boolean {
  return Number.isInteger(code) && Math.abs(code) < 2 ** 31;
}

/** A text without the codes that SDKs put before it, and the last of these codes. */
function unwrapped(text: string): { readonly text: string; readonly code: number | undefined } {
  let rest = text.trim();
  let code: number | undefined;
  for (let found = WRAPPED.exec(rest); found !== null; found = WRAPPED.exec(rest)) {
    code = Number(found[1]);
    rest = rest.slice(found[0].length).trim();
  }
  return { text: rest, code };
}

/** What a text says to a reader: of JSON the words in it, else all of it. */
function wordsOf(text: string): string {
  const value = jsonIn(text);
  return value === undefined ? text : (wordsIn(value, 0) ?? text);
}

/** The object or list that the whole text is as JSON. */
function jsonIn(text: string): JsonObject | readonly JsonValue[] | undefined {
  if (!/^[[{]/.test(text)) return undefined;
  try {
    const value = parseJson(text);
    return isJsonObject(value) || isJsonArray(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function wordsIn(value: JsonValue | undefined, depth: number): string | undefined {
  if (value === undefined || !isJsonObject(value) || depth >= MAX_WORDS_DEPTH) return undefined;
  for (const name of WORDS) {
    const found = ownValue(value, name);
    if (typeof found === "string" && found.trim() !== "") return unwrapped(found).text;
    const deeper = wordsIn(found, depth + 1);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}
