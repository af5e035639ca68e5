import type { TextDecoder } from "node:util";
import { LineSplitter, type PieceLimit } from "../shared/line-splitter.ts";
import { SseParser } from "../shared/sse-parser.ts";
import { textPieces } from "../shared/text-pieces.ts";
import type { ReadPiece } from "./decompress.ts";
import { isEventStream, isJsonLines, type MediaType } from "./media-type.ts";
import { textDecoder } from "./text-decoding.ts";

/** Most characters of one server-sent event or one line of NDJSON. */
export const MAX_PIECE_LENGTH = 1024 * 1024;

/** Cuts decoded text into what makes sense by itself. */
interface Framer {
  push(text: string): readonly string[];
  /** What the end of the text completes. */
  end(): readonly string[];
}

/**
 * Text of a body as it comes, in pieces that make sense by themselves: the data of each server-sent event and each
 * line of NDJSON with an LF after it, other text as it arrives. Never half a character, never too large for a message.
 */
export class DeltaReader {
  readonly #read: ReadPiece;
  readonly #framer: Framer;
  readonly #decoder: TextDecoder;
  #ended = false;

  /** `exceeded` makes the error for an event or line over {@link MAX_PIECE_LENGTH}. Throws UnreadableAnswer for an unknown charset. */
  constructor(read: ReadPiece, media: MediaType, exceeded: PieceLimit["exceeded"]) {
    this.#read = read;
    this.#framer = createFramer(media, { maxLength: MAX_PIECE_LENGTH, exceeded });
    // Server-sent events are UTF-8 whatever the answer says.
    this.#decoder = textDecoder(isEventStream(media) ? "utf-8" : media.charset);
  }

  /** What came since the last time, at least one piece; `undefined` at the end. */
  async next(): Promise<readonly string[] | undefined> {
    while (!this.#ended) {
      const bytes = await this.#read();
      this.#ended = bytes === undefined;
      const texts = this.#framer.push(this.#decoder.decode(bytes, { stream: bytes !== undefined }));
      const all = this.#ended ? [...texts, ...this.#framer.end()] : texts;
      if (all.length > 0) return all.flatMap(textPieces);
    }
    return undefined;
  }
}

function createFramer(media: MediaType, limit: PieceLimit): Framer {
  if (isEventStream(media)) {
    const parser = new SseParser(limit);
    return {
      push: (text) => parser.push(text).map((event) => `${event.data}\n`),
      end() {
        const open = parser.end();
        return open === undefined ? [] : [`${open.data}\n`];
      },
    };
  }
  if (isJsonLines(media)) {
    const lines = new LineSplitter("lf", limit);
    return { push: (text) => nonEmpty(lines.push(text)), end: () => nonEmpty([lines.end() ?? ""]) };
  }
  return { push: (text) => (text === "" ? [] : [text]), end: () => [] };
}

function nonEmpty(lines: readonly string[]): string[] {
  return lines.flatMap((line) => (line.trim() === "" ? [] : [`${line.trim()}\n`]));
}
