import type { TextDecoder } from "node:util";
import type { UpstreamResult } from "../../core/call.ts";
import { KEPT_JSON, KEPT_TEXT, type OpenOverflow } from "../../core/results.ts";
import type { ReadPiece } from "./decompress.ts";
import { isJson, isText, type MediaType } from "./media-type.ts";
import { textDecoder } from "./text-decoding.ts";

/** How much of the beginning of a text that is too large for memory is given as its result. */
const HEAD_BYTES = 512 * 1024;

/** What is read. */
export interface LargeBody {
  readonly read: ReadPiece;
  readonly media: MediaType;
  /** Most bytes held in memory. */
  readonly limit: number;
  /** Bytes that it says to have; 0: it does not say. */
  readonly announced: number;
}

/** A body, or what becomes of one that is too large. */
export type ReadBody = Buffer | Pick<UpstreamResult, "content" | "overflow">;

/**
 * Reads a body as a whole; one that is larger than the limit goes to an overflow, piece by piece, and is read no
 * further than that takes it.
 */
export async function readOrOverflow(body: LargeBody, open: OpenOverflow): Promise<ReadBody> {
  const pieces: Buffer[] = [];
  let total = 0;
  if (body.announced > body.limit) return spill(pieces, body, open);
  for (let piece = await body.read(); piece !== undefined; piece = await body.read()) {
    pieces.push(piece);
    total += piece.length;
    if (total > body.limit) return spill(pieces, body, open);
  }
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
}

/** `pieces`: what was read already; they are let go as they are written. */
async function spill(
  pieces: Buffer[],
  { read, media }: LargeBody,
  open: OpenOverflow,
): Promise<Pick<UpstreamResult, "content" | "overflow">> {
  const first = pieces[0] ?? (await read()) ?? Buffer.alloc(0);
  if (pieces.length === 0) pieces.push(first);
  const text = isText(media) ?? !first.includes(0);
  const head = new Head(text ? textDecoder(media.charset) : undefined);
  await using overflow = open(keptAs(media, text), text ? (media.charset ?? "utf-8") : undefined);
  let room = true;
  for (let piece = pieces.shift(); room && piece !== undefined; piece = pieces.shift() ?? (await read())) {
    head.add(piece);
    room = await overflow.write(piece);
  }
  const outcome = await overflow.finish(room);
  return { content: text ? [{ type: "text", text: head.text }] : [], overflow: outcome };
}

/** The beginning of a text. */
class Head {
  text = "";
  readonly #decoder: TextDecoder | undefined;
  #bytes = 0;

  /** `decoder`: undefined where there is no text. */
  constructor(decoder: TextDecoder | undefined) {
    this.#decoder = decoder;
  }

  add(piece: Buffer): void {
    if (this.#decoder === undefined || this.#bytes >= HEAD_BYTES) return;
    this.#bytes += piece.length;
    this.text += this.#decoder.decode(piece, { stream: true });
  }
}

function keptAs(media: MediaType, text: boolean): string {
  if (isJson(media)) return KEPT_JSON;
  if (!text) return media.name === "" ? "application/octet-stream" : media.name;
  return media.name.startsWith("text/") ? media.name : KEPT_TEXT;
}
