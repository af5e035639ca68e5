import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";

/** U+FFFD in UTF-8: a program may print it itself. */
const REPLACEMENT = Buffer.from("\ufffd");

/**
 * Decodes output that comes in pieces, cut anywhere. A byte order mark is dropped; one of UTF-16 also tells the order of
 * bytes. Bytes that are no text become U+FFFD.
 */
export class OutputDecoder {
  readonly #encoding: string;
  #decoder: TextDecoder | undefined;
  /** Bytes before the decoder is chosen: a byte order mark may be cut in two. */
  #start: Buffer | undefined = Buffer.alloc(0);
  #flawed = false;

  /** The encoding is one that `TextDecoder` knows. */
  constructor(encoding: string) {
    this.#encoding = encoding;
  }

  /** Whether there were bytes that are no text in this encoding. */
  get flawed(): boolean {
    return this.#flawed;
  }

  push(bytes: Buffer): string {
    if (this.#start === undefined) return this.#decode(bytes, true);
    this.#start = Buffer.concat([this.#start, bytes]);
    return this.#start.length < 2 ? "" : this.#begin(true);
  }

  /** The text that the end completes. */
  end(): string {
    return this.#start === undefined ? this.#decode(Buffer.alloc(0), false) : this.#begin(false);
  }

  #begin(more: boolean): string {
    const bytes = this.#start ?? Buffer.alloc(0);
    this.#start = undefined;
    const bigEndian = this.#encoding.startsWith("utf-16") && bytes[0] === 0xfe && bytes[1] === 0xff;
    this.#decoder = new TextDecoder(bigEndian ? "utf-16be" : this.#encoding);
    return this.#decode(bytes, more);
  }

  #decode(bytes: Buffer, more: boolean): string {
    const text = this.#decoder?.decode(bytes, { stream: more }) ?? "";
    if (!this.#flawed && text.includes("\ufffd")) this.#flawed = !bytes.includes(REPLACEMENT);
    return text;
  }
}

/** The text of whole output, and whether all of it is text. */
export interface DecodedOutput {
  readonly text: string;
  readonly flawed: boolean;
}

/** Decodes output as a whole. */
export function decodeOutput(bytes: Buffer, encoding: string): DecodedOutput {
  if (encoding === "utf-8" && isUtf8(bytes)) {
    const text = bytes.toString("utf8");
    return { text: text.startsWith("\ufeff") ? text.slice(1) : text, flawed: false };
  }
  const decoder = new OutputDecoder(encoding);
  const text = decoder.push(bytes) + decoder.end();
  return { text, flawed: decoder.flawed };
}
