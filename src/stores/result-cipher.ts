import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";

/** Plain bytes of a chunk; the last of a file may have fewer. */
export const CHUNK_BYTES = 64 * 1024;

/** Bytes of an AES-256 key. */
const KEY_BYTES = 32;
/** Bytes of an authentication tag and of a nonce of GCM. */
const TAG_BYTES = 16;
const NONCE_BYTES = 12;

/** How the chunks of one file stand on disk. */
export interface ChunkCipher {
  /** Bytes that a chunk has more on disk. */
  readonly overhead: number;
  seal(index: number, plain: Uint8Array): Uint8Array;
  /** @throws Error where the bytes are not those that were sealed at that place of that file. */
  open(index: number, sealed: Uint8Array): Uint8Array;
}

/** Chunks as they are. */
export const PLAIN_CHUNKS: ChunkCipher = {
  overhead: 0,
  seal: (_index, plain) => plain,
  open: (_index, sealed) => sealed,
};

/** The key that a text says: 32 bytes as 64 hexadecimal digits or as base64; undefined where it says none. */
export function parseKey(text: string): Uint8Array | undefined {
  const clean = text.trim();
  if (/^[0-9a-f]{64}$/i.test(clean)) return Buffer.from(clean, "hex");
  const bytes = /^[A-Za-z0-9+/_-]{43}=?$/.test(clean) ? Buffer.from(clean, "base64") : undefined;
  return bytes?.byteLength === KEY_BYTES ? bytes : undefined;
}

/**
 * Chunks under AES-256-GCM. Each file has a key of its own, made from the gateway's and its id, so a counter as nonce is
 * never used twice: a file is written once. A chunk that is moved to another place or another file does not open.
 * Source: NIST SP 800-38D; RFC 5869.
 */
export function sealedChunks(key: Uint8Array, id: string): ChunkCipher {
  const own = Buffer.from(hkdfSync("sha256", key, id, "toolgate result", KEY_BYTES));
  return {
    overhead: TAG_BYTES,
    seal(index, plain) {
      const cipher = createCipheriv("aes-256-gcm", own, nonce(index));
      return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    open(index, sealed) {
      const decipher = createDecipheriv("aes-256-gcm", own, nonce(index), { authTagLength: TAG_BYTES });
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
    },
  };
}

function nonce(index: number): Uint8Array {
  const bytes = Buffer.alloc(NONCE_BYTES);
  bytes.writeUIntBE(index, NONCE_BYTES - 6, 6);
  return bytes;
}
