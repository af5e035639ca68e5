import type { ResultQuery, ResultSource } from "../../core/results.ts";
import { headIndex } from "../../core/text.ts";
import type { Place } from "./cursor.ts";
import { byteOfLine, textAt } from "./text-scan.ts";

/** A page of text, and where the next begins. */
export interface TextPage {
  readonly text: string;
  readonly next: Place | undefined;
}

/** Lines from one on. A page ends with a line, unless that alone is too long for it. */
export async function readLines(
  source: ResultSource,
  query: Extract<ResultQuery, { type: "lines" }>,
  from: number | undefined,
  options: { readonly maxLength: number; readonly signal: AbortSignal },
): Promise<TextPage> {
  const { maxLength, signal } = options;
  const byte = from ?? (await byteOfLine(source, query.start, signal));
  const text = await textAt(source, byte, maxLength * 4);
  const room = text.slice(0, headIndex(text, maxLength));
  const { end, lines } = endOfLines(room, query.count, room.length === text.length);
  const page = room.slice(0, end);
  const nextByte = byte + Buffer.byteLength(page);
  const left = query.count === 0 ? 0 : query.count - lines;
  const over = nextByte >= source.facts.bytes || (query.count > 0 && left <= 0) || page === "";
  const next = { query: { ...query, start: query.start + lines, count: left }, byte: nextByte };
  return { text: page, next: over ? undefined : next };
}

/** Where a page of at most so many lines ends (0: any number), and how many it ends. */
function endOfLines(text: string, most: number, isAll: boolean): { readonly end: number; readonly lines: number } {
  let lines = 0;
  let end = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    end = at + 1;
    lines += 1;
    if (lines === most) return { end, lines };
  }
  if (isAll) return { end: text.length, lines: end === text.length ? lines : lines + 1 };
  // One line that is longer than the page is given in parts.
  return end === 0 ? { end: text.length, lines: 0 } : { end, lines };
}
