import { wellFormed } from "../core/text.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Bytes of the text in UTF-8. */
export function utf8Length(text: string): number {
  return Buffer.byteLength(text);
}

/** The text if its UTF-8 form fits in `maxBytes` (at least 4), else its beginning and `…`, cut on a code point border. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || utf8Length(text) <= maxBytes) return wellFormed(text);
  const scratch = new Uint8Array(maxBytes - 3);
  const { written } = encoder.encodeInto(text.slice(0, maxBytes), scratch);
  return `${decoder.decode(scratch.subarray(0, written))}…`;
}

/** The text in pieces of at most `maxBytes` (at least 4) of UTF-8, each of whole code points. */
export function splitUtf8(text: string, maxBytes: number): string[] {
  if (text.length * 3 <= maxBytes || utf8Length(text) <= maxBytes) return [text];
  const scratch = new Uint8Array(maxBytes);
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    const { read } = encoder.encodeInto(text.slice(start, start + maxBytes), scratch);
    pieces.push(text.slice(start, start + read));
    start += read;
  }
  return pieces;
}
