import type { Duplex } from "node:stream";

/**
 * What gateway and launcher say to each other about one program. To the launcher: `start`, `input`, `input-end`,
 * `credit`, `kill`; the others come from it. A program that was refused is over; any other ends with `gone`.
 */
const FRAME_KINDS = [
  "start",
  "input",
  "input-end",
  "credit",
  "kill",
  "started",
  "refused",
  "output",
  "errors",
  "ended",
  "gone",
] as const;

/** One of them. */
export type FrameKind = (typeof FRAME_KINDS)[number];

/** One message. */
export interface Frame {
  readonly kind: FrameKind;
  /** The program it is about; given by the gateway, never used twice. */
  readonly id: number;
  readonly payload: Buffer;
}

/** Payload of `start`, as JSON. */
export interface StartRequest {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All of the program's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether input follows; without it the program reads the end at once. */
  readonly input: boolean;
  /** From TERM to KILL. */
  readonly graceMs: number;
  /** Output that may be on its way to the gateway before `credit` for it comes back. */
  readonly windowBytes: number;
  /** Whether the end of the error output is told while the program runs too. */
  readonly tellErrors?: boolean;
}

/** Payload of `ended`, as JSON. */
export interface ProgramExit {
  /** Null: it died of a signal. */
  readonly code: number | null;
  readonly signal: string | null;
}

/** Length of all that follows, kind, and program. */
const HEADER_BYTES = 9;

/** Nothing. */
export const NO_PAYLOAD: Buffer = Buffer.alloc(0);

/** A number as a payload. */
export function numberPayload(value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value);
  return payload;
}

/** Plain data as a payload. */
export function jsonPayload(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Writes a message; the stream may be closed already. */
export function writeFrame(stream: Duplex, kind: FrameKind, id: number, payload: Buffer): void {
  if (!stream.writable) return;
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32BE(HEADER_BYTES - 4 + payload.length);
  header.writeUInt8(FRAME_KINDS.indexOf(kind), 4);
  header.writeUInt32BE(id, 5);
  // One write for both, so that a small message is one packet.
  stream.cork();
  stream.write(header);
  if (payload.length > 0) stream.write(payload);
  stream.uncork();
}

/** Puts messages together from bytes that come in any pieces. */
export class FrameReader {
  #pending: Buffer[] = [];
  #bytes = 0;
  /** Bytes that make the next message whole, as far as that is known. */
  #needed = HEADER_BYTES;

  /** The messages that end in these bytes. */
  push(chunk: Buffer): Frame[] {
    this.#pending.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#needed) return [];
    const bytes = this.#pending.length === 1 ? chunk : Buffer.concat(this.#pending);
    const frames: Frame[] = [];
    let from = 0;
    this.#needed = HEADER_BYTES;
    while (bytes.length - from >= HEADER_BYTES) {
      const size = bytes.readUInt32BE(from) + 4;
      this.#needed = size;
      if (bytes.length - from < size) break;
      const kind = FRAME_KINDS[bytes.readUInt8(from + 4)];
      if (kind === undefined) throw new Error("the launcher's link carries something else");
      frames.push({
        kind,
        id: bytes.readUInt32BE(from + 5),
        payload: bytes.subarray(from + HEADER_BYTES, from + size),
      });
      from += size;
      this.#needed = HEADER_BYTES;
    }
    this.#pending = from < bytes.length ? [bytes.subarray(from)] : [];
    this.#bytes = bytes.length - from;
    return frames;
  }
}
