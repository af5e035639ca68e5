/** UTF-8 takes at most three bytes a UTF-16 unit, so a piece stays below the 64 KiB that one message carries. */
const MAX_UNITS = 16_384;

/** Cuts text into pieces of whole code points that are small enough for one message of a stream. */
export function textPieces(text: string): readonly string[] {
  if (text.length <= MAX_UNITS) return [text];
  const pieces: string[] = [];
  let from = 0;
  while (from < text.length) {
    const end = Math.min(from + MAX_UNITS, text.length);
    const to = end < text.length && isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
