import { pipeline, Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";
import { GatewayError } from "../../core/errors.ts";
import { UnreadableAnswer } from "./unreadable-answer.ts";

/** Gives the next piece of a body; `undefined` at its end. */
export type ReadPiece = () => Promise<Buffer | undefined>;

/** A body, decoded. */
export interface BodySource extends Disposable {
  readonly read: ReadPiece;
}

/** More than one is odd already, and each costs memory. */
const MAX_CODINGS = 3;

const CODINGS = new Set(["gzip", "x-gzip", "deflate", "br", "zstd"]);

/**
 * Undoes the content codings of an answer, reading no faster than it is read. `read` throws UnreadableAnswer for a
 * coding nobody knows and for bytes that are not in the coding named. Source: RFC 9110, section 8.4.
 */
export function decodedBody(read: ReadPiece, contentEncoding: string | undefined): BodySource {
  if (contentEncoding === undefined) return { read, [Symbol.dispose]: () => undefined };
  const codings = contentEncoding
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim());
  const applied = codings.filter((coding) => coding !== "" && coding !== "identity");
  const unknown = applied.find((coding) => !CODINGS.has(coding));
  if (unknown !== undefined) return unreadable(`its content-encoding \`${unknown.slice(0, 40)}\` is unknown`);
  if (applied.length > MAX_CODINGS) return unreadable(`it has ${applied.length} content codings`);
  return applied.reduceRight<BodySource>(undo, { read, [Symbol.dispose]: () => undefined });
}

function unreadable(problem: string): BodySource {
  return { read: () => Promise.reject(new UnreadableAnswer(problem)), [Symbol.dispose]: () => undefined };
}

function undo(source: BodySource, coding: string): BodySource {
  let decoder: Transform | undefined;
  let pieces: AsyncIterator<Buffer> | undefined;
  return {
    async read() {
      try {
        if (pieces === undefined) {
          const first = await source.read();
          if (first === undefined) return undefined;
          decoder = createDecoder(coding, first);
          // What goes wrong shows where the pieces are read.
          pipeline(Readable.from(piecesFrom(first, source.read)), decoder, () => undefined);
          pieces = (decoder as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
        }
        const next = await pieces.next();
        return next.done === true ? undefined : next.value;
      } catch (error) {
        if (error instanceof GatewayError || error instanceof UnreadableAnswer) throw error;
        throw new UnreadableAnswer(`its content-encoding says \`${coding}\`, and its bytes are something else`, error);
      }
    },
    [Symbol.dispose]() {
      decoder?.destroy();
      source[Symbol.dispose]();
    },
  };
}

function createDecoder(coding: string, first: Buffer): Transform {
  switch (coding) {
    case "br":
      return createBrotliDecompress();
    case "zstd":
      return createZstdDecompress();
    case "deflate":
      // Meant is zlib's format, but some servers send the bare stream: its first byte then is no zlib header.
      return ((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
    default:
      return createGunzip();
  }
}

async function* piecesFrom(first: Buffer, read: ReadPiece): AsyncGenerator<Buffer> {
  for (let piece: Buffer | undefined = first; piece !== undefined; piece = await read()) yield piece;
}
