import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { UnreadableAnswer } from "./unreadable-answer.ts";

/**
 * A decoder for a charset; UTF-8 where the answer names none. A byte order mark is dropped, bytes that are no text
 * become U+FFFD.
 *
 * @throws UnreadableAnswer for a charset nobody knows.
 */
export function textDecoder(charset: string | undefined): TextDecoder {
  try {
    return new TextDecoder(charset ?? "utf-8");
  } catch (cause) {
    if (cause instanceof RangeError)
      throw new UnreadableAnswer(`its charset \`${charset?.slice(0, 40)}\` is unknown`, cause);
    throw cause;
  }
}

/**
 * Decodes a whole body.
 *
 * @throws UnreadableAnswer for a charset nobody knows.
 */
export function decodeText(bytes: Buffer, charset: string | undefined): string {
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) return textDecoder(charset).decode(bytes);
  // Three times as quick as TextDecoder for the small answers that most are.
  const text = bytes.toString("utf8");
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/** Whether the bytes are UTF-8 text. */
export function isUtf8Text(bytes: Buffer): boolean {
  return !bytes.includes(0) && isUtf8(bytes);
}
