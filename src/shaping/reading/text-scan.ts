import type { ResultSource } from "../../core/results.ts";

/** Bytes read at a time. */
const PIECE_BYTES = 64 * 1024;

const NEWLINE = 10;

/** Pieces of a source from a byte on. Ends early with the signal's reason. */
export async function* piecesFrom(
  source: ResultSource,
  byte: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  for (let at = byte; at < source.facts.bytes; ) {
    signal.throwIfAborted();
    const piece = Buffer.from(await source.read(at, PIECE_BYTES));
    yield piece;
    at += piece.byteLength;
  }
}

/** Byte at which a line begins, counted from 1; the size of the source where it has not that many. */
export async function byteOfLine(source: ResultSource, line: number, signal: AbortSignal): Promise<number> {
  let left = line - 1;
  if (left <= 0) return 0;
  let base = 0;
  for await (const piece of piecesFrom(source, 0, signal)) {
    for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) {
      left -= 1;
      if (left === 0) return base + at + 1;
    }
    base += piece.byteLength;
  }
  return source.facts.bytes;
}

/** The text of at most so many bytes from a byte on, which is the first of a character; whole characters only. */
export async function textAt(source: ResultSource, byte: number, maxBytes: number): Promise<string> {
  const bytes = Buffer.from(await source.read(byte, maxBytes));
  const whole = byte + bytes.byteLength >= source.facts.bytes ? bytes : bytes.subarray(0, wholeLength(bytes));
  return whole.toString("utf8");
}

/** A line, or a part of one that is very long. */
export interface Segment {
  readonly text: string;
  /** Counted from 1. */
  readonly line: number;
  /** Its first byte. */
  readonly byte: number;
  /** Bytes of it, the line's end included. */
  readonly bytes: number;
}

/** Longest segment, in bytes. */
const MAX_SEGMENT = 64 * 1024;

/** How much of the end of a part is seen again in the next part of its line. */
const OVERLAP_BYTES = 1024;

/** Lines from a byte on, in which line `line` begins. A very long one comes in parts that overlap. */
export async function* segmentsFrom(
  source: ResultSource,
  byte: number,
  line: number,
  signal: AbortSignal,
): AsyncGenerator<Segment, void, undefined> {
  let held: Buffer = Buffer.alloc(0);
  let at = byte;
  let nth = line;
  for await (const piece of piecesFrom(source, byte, signal)) {
    held = held.byteLength === 0 ? piece : Buffer.concat([held, piece]);
    let from = 0;
    for (let end = held.indexOf(NEWLINE); end >= 0 || held.byteLength - from > MAX_SEGMENT; ) {
      const ends = end >= 0 && end - from < MAX_SEGMENT;
      const stop = ends ? end + 1 : from + wholeLength(held.subarray(from, from + MAX_SEGMENT));
      yield { text: lineText(held.subarray(from, stop)), line: nth, byte: at + from, bytes: stop - from };
      from = ends ? stop : characterStart(held, stop - OVERLAP_BYTES);
      if (ends) nth += 1;
      end = held.indexOf(NEWLINE, from);
    }
    at += from;
    held = held.subarray(from);
  }
  if (held.byteLength > 0) yield { text: lineText(held), line: nth, byte: at, bytes: held.byteLength };
}

function lineText(bytes: Buffer): string {
  return bytes.toString("utf8").replace(/\r?\n$/, "");
}

/** How many bytes of a beginning of UTF-8 are whole characters. */
function wholeLength(bytes: Uint8Array): number {
  const { length } = bytes;
  for (let back = 1; back <= Math.min(4, length); back++) {
    const byte = bytes[length - back] ?? 0;
    if (byte < 0x80) return length;
    if (byte >= 0xc0) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > back ? length - back : length;
  }
  return length;
}

/** The first byte of the character that a byte belongs to. */
function characterStart(bytes: Uint8Array, index: number): number {
  let start = index;
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
