import type { FileHandle } from "node:fs/promises";
import { handleOf, type KeptResult, type ResultSource, resultGone } from "../core/results.ts";
import { CHUNK_BYTES, type ChunkCipher } from "./result-cipher.ts";

/** A file of chunks as bytes without bounds between them. `damaged` is told where a chunk is not what was written. */
export function openResult(
  facts: KeptResult,
  file: FileHandle,
  cipher: ChunkCipher,
  damaged: () => void,
): ResultSource {
  const sealedBytes = CHUNK_BYTES + cipher.overhead;
  const readChunk = async (index: number): Promise<Uint8Array> => {
    const expected = Math.min(CHUNK_BYTES, facts.bytes - index * CHUNK_BYTES);
    const sealed = Buffer.alloc(expected + cipher.overhead);
    const { bytesRead } = await file.read(sealed, 0, sealed.byteLength, index * sealedBytes);
    if (bytesRead !== sealed.byteLength) throw new Error("a kept result is shorter than its record says");
    return cipher.open(index, sealed);
  };
  return {
    facts,
    async read(offset, length) {
      const end = Math.min(facts.bytes, offset + length);
      const pieces: Uint8Array[] = [];
      try {
        for (let at = offset; at < end; ) {
          const index = Math.floor(at / CHUNK_BYTES);
          const within = at - index * CHUNK_BYTES;
          const piece = (await readChunk(index)).subarray(within, within + end - at);
          pieces.push(piece);
          at += piece.byteLength;
        }
      } catch {
        // Cut short, changed, or sealed with another key: nothing of it can be trusted.
        damaged();
        throw resultGone(handleOf(facts.id), facts.tool, "it cannot be read");
      }
      return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
    },
    async [Symbol.asyncDispose]() {
      // One that cannot be closed is not in anybody's way.
      await file.close().catch(() => undefined);
    },
  };
}
