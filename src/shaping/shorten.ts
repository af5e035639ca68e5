import type { TruncationMode } from "../core/call.ts";
import { codePointCount, headIndex, tailIndex } from "../core/text.ts";

/** A text within its limit. */
export interface Shortened {
  readonly text: string;
  /** Code points of the whole text. */
  readonly originalLength: number;
}

/**
 * The text with at most `limit` code points, or `undefined` where it has no more than that. The mark that says what was
 * kept of how many characters counts too; where it would take more than half of the limit, `…` stands in its place.
 * Never cuts a code point in two.
 */
export function shorten(text: string, limit: number, mode: TruncationMode): Shortened | undefined {
  if (text.length <= limit) return undefined;
  const originalLength = codePointCount(text);
  if (originalLength <= limit) return undefined;
  if (limit < 1) return { text: "", originalLength };
  // A number of kept characters has at most the digits of the limit, so the real mark is no longer than this one.
  const room = longestMark(mode, limit, originalLength);
  const short = room * 2 > limit;
  const kept = limit - (short ? 1 : room);
  const head = mode === "tail" ? 0 : mode === "head" ? kept : Math.ceil(kept / 2);
  const tail = kept - head;
  const mark = short ? "…" : markOf(head, tail, originalLength);
  return { text: text.slice(0, headIndex(text, head)) + mark + text.slice(tailIndex(text, tail)), originalLength };
}

function longestMark(mode: TruncationMode, limit: number, originalLength: number): number {
  return markOf(mode === "tail" ? 0 : limit, mode === "head" ? 0 : limit, originalLength).length;
}

function markOf(head: number, tail: number, originalLength: number): string {
  if (tail === 0) return `\n[cut: first ${head} of ${originalLength} characters]`;
  if (head === 0) return `[cut: last ${tail} of ${originalLength} characters]\n`;
  return `\n[cut: first ${head} and last ${tail} of ${originalLength} characters]\n`;
}
