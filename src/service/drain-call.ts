import type { ContentPart, ToolResult } from "../core/call.ts";
import { GatewayError } from "../core/errors.ts";
import { codePointCount, headIndex } from "../core/text.ts";
import { withinMessage } from "../wire/result-codec.ts";
import type { CallEnd, CallEvent } from "./run-call.ts";

/** Most code points of streamed text that a conclusive answer holds, in all its parts: at most 2.8 MB. */
const MAX_STREAMED_LENGTH = 700_000;

/** A call with all its output in the result. */
export interface DrainedCall {
  readonly callId: string;
  readonly end: CallEnd;
}

/**
 * Runs a call to its end and puts the text it streamed into its result: so Call is CallStream, drained. Text beyond
 * 700,000 code points is dropped, and the result says so.
 */
export async function drainCall(events: AsyncIterable<CallEvent>): Promise<DrainedCall> {
  const streamed = new StreamedText();
  let callId = "";
  let end: CallEnd | undefined;
  for await (const event of events) {
    if (event.type === "started") callId = event.callId;
    else if (event.type === "delta") streamed.add(event.index, event.text);
    else if (event.type === "completed") end = event;
  }
  if (end === undefined) throw new GatewayError("INTERNAL", "internal error");
  return { callId, end: end.result === undefined ? end : { ...end, result: withinMessage(streamed.into(end.result)) } };
}

/** Text that came in pieces, by content part. */
class StreamedText {
  readonly #parts = new Map<number, string[]>();
  #length = 0;

  add(part: number, text: string): void {
    const room = MAX_STREAMED_LENGTH - this.#length;
    this.#length += codePointCount(text);
    if (room <= 0) return;
    const piece = text.slice(0, headIndex(text, room));
    const pieces = this.#parts.get(part);
    if (pieces === undefined) this.#parts.set(part, [piece]);
    else pieces.push(piece);
  }

  /** The result with the streamed parts at their places among its own. */
  into(result: ToolResult): ToolResult {
    if (this.#parts.size === 0) return result;
    const texts = [...this.#parts]
      .toSorted(([a], [b]) => a - b)
      .map(([part, pieces]) => ({ part, text: pieces.join("") }));
    const cut = this.#length > MAX_STREAMED_LENGTH;
    const last = texts.at(-1);
    if (cut && last !== undefined) last.text += `\n[cut: first ${MAX_STREAMED_LENGTH} of ${this.#length} characters]`;
    const content: ContentPart[] = [...result.content];
    for (const { part, text } of texts) content.splice(Math.min(part, content.length), 0, { type: "text", text });
    const truncation = cut ? { originalLength: this.#length, mode: "head" as const } : result.truncation;
    return { ...result, content, truncation };
  }
}
