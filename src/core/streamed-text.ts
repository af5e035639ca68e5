import type { ContentPart, ToolResult } from "./call.ts";
import { codePointCount, headIndex } from "./text.ts";

/** Most code points of streamed text that a conclusive answer holds, in all its parts: at most 2.8 MB. */
const MAX_STREAMED_LENGTH = 700_000;

/** Text that came in pieces, by content part. What is beyond 700,000 code points is dropped. */
export class StreamedText {
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

  /** The result with the streamed parts at their places among its own; where text was dropped, it says so. */
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
