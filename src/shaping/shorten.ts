import type { TruncationMode } from "../core/call.ts";
import { codePointCount, headIndex, tailIndex } from "../core/text.ts";

/** A text within its limit. */
export interface Shortened {
  readonly text: string;
  /** Code points of the whole text. */
  readonly originalLength: number;
}

/** What a mark says besides what was kept. */
export interface MarkFacts {
  /** Names the whole; left out of a mark that has no room for it. */
  readonly handle?: string | undefined;
  /** How large the whole is, where the text is only its beginning, which gets a mark then however short it is. */
  readonly of?: string | undefined;
}

/**
 * The text with at most `limit` code points, or `undefined` where it has no more than that. The mark that says what was
 * kept of how many characters counts too; where it would take more than half of the limit, `…` stands in its place.
 * Never cuts a code point in two.
 */
export function shorten(
  text: string,
  limit: number,
  mode: TruncationMode,
  { handle, of }: MarkFacts = {},
): Shortened | undefined {
  if (text.length <= limit && of === undefined) return undefined;
  const originalLength = codePointCount(text);
  if (originalLength <= limit && of === undefined) return undefined;
  if (limit < 1) return { text: "", originalLength };
  // A number of kept characters has at most the digits of the limit, so the real mark is no longer than this one.
  const size = sizeText(originalLength, of);
  const bare = longestMark(mode, limit, size);
  const whole = wholeText(handle, bare, limit);
  const room = bare + whole.length;
  const short = room * 2 > limit;
  const kept = limit - (short ? 1 : room);
  const head = mode === "tail" ? 0 : mode === "head" ? kept : Math.ceil(kept / 2);
  const tail = kept - head;
  const mark = short ? "…" : markOf(head, tail, size + whole);
  return { text: text.slice(0, headIndex(text, head)) + mark + text.slice(tailIndex(text, tail)), originalLength };
}

function sizeText(originalLength: number, of: string | undefined): string {
  return of === undefined ? ` of ${originalLength} characters` : ` characters of ${of}`;
}

/** Where the whole is, if a mark of at least so many characters has room for it. */
function wholeText(handle: string | undefined, bare: number, limit: number): string {
  const text = handle === undefined ? "" : `; whole: ${handle}`;
  return (bare + text.length) * 2 > limit ? "" : text;
}

function longestMark(mode: TruncationMode, limit: number, size: string): number {
  return markOf(mode === "tail" ? 0 : limit, mode === "head" ? 0 : limit, size).length;
}

function markOf(head: number, tail: number, size: string): string {
  if (tail === 0) return `\n[cut: first ${head}${size}]`;
  if (head === 0) return `[cut: last ${tail}${size}]\n`;
  return `\n[cut: first ${head} and last ${tail}${size}]\n`;
}
