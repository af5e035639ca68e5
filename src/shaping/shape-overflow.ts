import type { ToolResult, TruncationMode } from "../core/call.ts";
import { type JsonValue, parseJson } from "../core/json.ts";
import { handleOf, type KeepOutcome, type KeptResult } from "../core/results.ts";
import { codePointCount } from "../core/text.ts";
import { closedJson } from "./closed-json.ts";
import { type Shortened, shorten } from "./shorten.ts";
import { summarizeJson, summarizeText } from "./summary/summarize.ts";
import type { Work } from "./summary/work.ts";

/** How much of the beginning may be given. */
export interface OverflowLimits {
  /** Most code points. */
  readonly room: number;
  readonly mode: TruncationMode;
  readonly question: string;
}

/**
 * The result of an answer that was too large for memory: its beginning shortened, or summed up, with the handle of what
 * was kept. `head`: the beginning, redacted; `undefined` where the answer is no text.
 */
export function* shapeOverflow(
  head: string | undefined,
  overflow: KeepOutcome,
  limits: OverflowLimits,
): Work<Omit<ToolResult, "structuredJson" | "failure">> {
  const kept = overflow.ok ? overflow.kept : undefined;
  const handle = kept === undefined ? undefined : handleOf(kept.id);
  const named = handle === undefined ? {} : { handle };
  const notices = noticesOf(overflow);
  if (head === undefined) {
    const content = kept === undefined ? [] : [linkTo(kept)];
    return { content, truncation: { originalLength: undefined, mode: "head", ...named }, notices };
  }
  const facts = { handle, of: sizeOf(kept, head) };
  const summary = limits.mode === "summary" ? yield* summaryOf(head, limits, facts) : undefined;
  const cut = summary ?? shorten(head, limits.room, "head", facts);
  const mode = summary === undefined ? "head" : "summary";
  return {
    content: [{ type: "text", text: cut?.text ?? head }],
    truncation: { originalLength: undefined, mode, ...named },
    notices,
  };
}

function* summaryOf(
  head: string,
  { room: limit, question }: OverflowLimits,
  facts: { readonly handle: string | undefined; readonly of: string },
): Work<Shortened | undefined> {
  const options = { limit, question, ...facts };
  const json = /^\s*[[{]/.test(head) ? closedJson(head) : undefined;
  const value = json === undefined ? undefined : jsonIn(json);
  return value === undefined || json === undefined
    ? yield* summarizeText(head, options)
    : yield* summarizeJson(value, json, options);
}

function jsonIn(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** How large the whole is, as far as it is known. */
function sizeOf(kept: KeptResult | undefined, head: string): string {
  if (kept === undefined) return `more than ${codePointCount(head)} characters`;
  return `${kept.complete ? "" : "more than "}${kept.bytes} bytes`;
}

function linkTo(kept: KeptResult) {
  const { mediaType: mimeType, bytes: sizeBytes, tool: name } = kept;
  return { type: "link" as const, uri: handleOf(kept.id), mimeType, name, sizeBytes };
}

function noticesOf(overflow: KeepOutcome): NonNullable<ToolResult["notices"]> {
  if (!overflow.ok) {
    const message = `the answer is too large for memory and could not be kept for reading on: ${overflow.problem}`;
    return [{ reason: "RESULT_NOT_KEPT", message }];
  }
  if (overflow.kept.complete) return [];
  const message = `the first ${overflow.kept.bytes} bytes of the answer were kept; it is larger, and the rest was not read`;
  return [{ reason: "RESULT_KEPT_IN_PART", message }];
}
