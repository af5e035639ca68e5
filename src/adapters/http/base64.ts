/** Characters decoded at a time: whole groups of four. */
const PIECE_LENGTH = 64 * 1024;

/** Whether a text is base64 in the standard alphabet, padded, without line breaks. Source: RFC 4648, section 4. */
export function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

/** How many bytes a base64 text stands for. */
export function base64Length(text: string): number {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return (text.length / 4) * 3 - padding;
}

/** The bytes of a base64 text, a piece at a time, so that they are never there as a whole. */
export function* base64Pieces(text: string): Generator<Buffer, void, undefined> {
  for (let at = 0; at < text.length; at += PIECE_LENGTH) {
    yield Buffer.from(text.slice(at, at + PIECE_LENGTH), "base64");
  }
}
