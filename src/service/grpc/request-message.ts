import type { ServerHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { GatewayError } from "../../core/errors.ts";
import { FRAME_HEAD_BYTES, isCompressed } from "./frame.ts";

/** How a request's one message is read. */
export interface MessageReading<T> {
  /** Largest message. */
  readonly maxBytes: number;
  /** For error texts: `unary` or `server-streaming`. */
  readonly kind: string;
  parse(bytes: Uint8Array): T;
}

/**
 * Reads a request that consists of one message, to its end. Rejects as soon as it cannot be that, and leaves the rest
 * to whoever ends the stream.
 *
 * @throws ConnectError in the words of Connect, so that it becomes the error that a request through Connect gets;
 * GatewayError where the stream closes.
 */
export function readMessage<T>(stream: ServerHttp2Stream, reading: MessageReading<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const body = new OneMessage(reading);
    const settle = (work: () => T | undefined, over: boolean): void => {
      try {
        const message = work();
        if (!over) return;
        stop();
        if (message === undefined) throw missing(reading.kind);
        resolve(message);
      } catch (error) {
        stop();
        reject(error);
      }
    };
    const onData = (chunk: Buffer): void => settle(() => body.take(chunk), false);
    const onEnd = (): void => settle(() => body.end(), true);
    const onClose = (): void => {
      stop();
      reject(new GatewayError("CALL_CANCELLED", "the caller went away before its request was there"));
    };
    const stop = (): void => void stream.off("data", onData).off("end", onEnd).off("close", onClose);
    // Node ends an empty body without being asked for it.
    if (stream.readableEnded) onEnd();
    else if (stream.destroyed) onClose();
    else stream.on("data", onData).on("end", onEnd).on("close", onClose);
  });
}

/** The message of a body that comes in pieces. */
class OneMessage<T> {
  readonly #reading: MessageReading<T>;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Bytes without which nothing can be said. */
  #wanted = FRAME_HEAD_BYTES;
  #message: T | undefined;

  constructor(reading: MessageReading<T>) {
    this.#reading = reading;
  }

  /** @throws ConnectError where this is no single message any more. */
  take(chunk: Buffer): undefined {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= this.#wanted) {
      const [first = Buffer.alloc(0)] = this.#chunks;
      const all = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#bytes);
      const length = all.readUInt32BE(1);
      const { maxBytes, kind, parse } = this.#reading;
      if (length > maxBytes) throw tooLarge(length, maxBytes);
      const frameBytes = FRAME_HEAD_BYTES + length;
      this.#chunks = [all];
      this.#wanted = frameBytes;
      if (this.#bytes < frameBytes) return;
      if (this.#message !== undefined) throw extra(kind);
      if (isCompressed(all)) throw notCompressed();
      this.#message = parse(all.subarray(FRAME_HEAD_BYTES, frameBytes));
      this.#chunks = this.#bytes === frameBytes ? [] : [all.subarray(frameBytes)];
      this.#bytes -= frameBytes;
      this.#wanted = FRAME_HEAD_BYTES;
    }
  }

  /** `undefined`: nothing came. @throws ConnectError where it ends within a message. */
  end(): T | undefined {
    if (this.#bytes > 0) throw new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
    return this.#message;
  }
}

function tooLarge(length: number, maxBytes: number): ConnectError {
  const text = `message size ${length} is larger than configured readMaxBytes ${maxBytes}`;
  return new ConnectError(text, Code.ResourceExhausted);
}

function notCompressed(): ConnectError {
  return new ConnectError("received compressed envelope, but do not know how to decompress", Code.Internal);
}

function missing(kind: string): ConnectError {
  return new ConnectError(`protocol error: missing input message for ${kind} method`, Code.Unimplemented);
}

function extra(kind: string): ConnectError {
  return new ConnectError(`protocol error: received extra input message for ${kind} method`, Code.Unimplemented);
}
