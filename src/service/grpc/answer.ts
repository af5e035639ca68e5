import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { UnreadAnswers } from "../unread-answers.ts";

/** Messages of one turn go out together until they are as large as this: what a frame of HTTP/2 holds. */
const BATCH_BYTES = 16 * 1024;

/** What an answer takes. */
export interface AnswerParts {
  readonly headers: OutgoingHttpHeaders;
  /** By which what its peer has not taken is counted. */
  readonly connection: object;
  readonly unread: UnreadAnswers;
  /** Gives the answer up: its connection has too much that was not taken. */
  reset(): void;
}

/** What is written for a caller: headers, messages and trailers of one answer. */
export class GrpcAnswer {
  /** Whether everything was handed to the transport. */
  ended = false;
  readonly #stream: ServerHttp2Stream;
  readonly #parts: AnswerParts;
  #batch: Buffer[] = [];
  #batchBytes = 0;
  #unreadBytes = 0;
  #wake: (() => void) | undefined;

  constructor(stream: ServerHttp2Stream, parts: AnswerParts) {
    this.#stream = stream;
    this.#parts = parts;
  }

  /** Writes a message, by the end of this turn. To be awaited, where there is something, before the next one. */
  write(frame: Buffer): Promise<void> | undefined {
    this.#batch.push(frame);
    this.#batchBytes += frame.length;
    if (this.#batchBytes < BATCH_BYTES && !this.#stream.writableNeedDrain) {
      if (this.#batch.length === 1) process.nextTick(() => this.#flush());
      return undefined;
    }
    this.#flush();
    return this.#stream.writableNeedDrain ? this.#drained() : undefined;
  }

  /** Ends the answer, with its last message where there is one. */
  end(trailers: OutgoingHttpHeaders, frame?: Buffer): void {
    const stream = this.#stream;
    this.#flush();
    if (!stream.writable) return;
    this.ended = true;
    this.#respond();
    stream.once("wantTrailers", () => sendTrailers(stream, trailers));
    stream.end(frame);
    this.#count(stream.writableLength);
  }

  /** The stream is closed: nothing is taken any more, and nobody waits. */
  close(): void {
    this.#batch = [];
    this.#count(0);
    this.#wake?.();
  }

  #respond(): void {
    if (!this.#stream.headersSent) this.#stream.respond(this.#parts.headers, { waitForTrailers: true });
  }

  #flush(): void {
    const batch = this.#batch;
    const [first] = batch;
    if (first === undefined) return;
    this.#batch = [];
    const bytes = this.#batchBytes;
    this.#batchBytes = 0;
    if (!this.#stream.writable) return;
    this.#respond();
    this.#stream.write(batch.length === 1 ? first : Buffer.concat(batch, bytes));
  }

  #drained(): Promise<void> {
    this.#count(this.#stream.writableLength);
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#wake = undefined;
        this.#count(0);
        resolve();
      };
      this.#wake = wake;
      this.#stream.once("drain", wake);
    });
  }

  /** So many bytes wait for the peer now. */
  #count(bytes: number): void {
    const more = bytes - this.#unreadBytes;
    if (more === 0) return;
    this.#unreadBytes = bytes;
    const { unread, connection } = this.#parts;
    if (!unread.change(connection, more)) this.#parts.reset();
  }
}

function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  stream.sendTrailers(trailers);
  // Node sends them in an immediate of its own, and a reset before that would drop them.
  if (!stream.readableEnded) setImmediate(() => stopRequest(stream));
}

/** Tells a caller that still sends its request to stop, and lets go of what is there, which would keep the stream. */
function stopRequest(stream: ServerHttp2Stream): void {
  if (stream.destroyed) return;
  if (stream.state.remoteClose === 0) stream.close(constants.NGHTTP2_NO_ERROR);
  stream.resume();
}
