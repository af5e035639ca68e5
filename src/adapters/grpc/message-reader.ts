/** Bytes before each message: whether it is compressed, and its length. Source: gRPC over HTTP/2, "Length-Prefixed-Message". */
const PREFIX_BYTES = 5;

/** Something that comes is no message, or none that is taken. */
export class BadMessage extends Error {
  /** The message is longer than the limit. */
  readonly tooLarge: boolean;

  /** `text` goes on after "the upstream's answer". */
  constructor(text: string, tooLarge: boolean) {
    super(text);
    this.tooLarge = tooLarge;
  }
}

/** A message as it goes on the wire. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  frame.writeUInt8(0, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, PREFIX_BYTES);
  return frame;
}

/** Cuts what comes into messages. */
export class MessageReader {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** `maxBytes`: most bytes of one message. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether something of a message came that is not there as a whole. */
  get isWithin(): boolean {
    return this.#bytes > 0;
  }

  /** Takes what came; gives the messages that are whole by it. @throws BadMessage. */
  take(piece: Buffer): Buffer[] {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    const messages: Buffer[] = [];
    while (this.#bytes >= PREFIX_BYTES) {
      const prefix = this.#first(PREFIX_BYTES);
      const length = prefix.readUInt32BE(1);
      if (length > this.#maxBytes)
        throw new BadMessage(
          `has a message of ${length} bytes, larger than the limit of ${this.#maxBytes} bytes`,
          true,
        );
      if (prefix[0] !== 0) throw new BadMessage("is compressed, although no compression was offered", false);
      if (this.#bytes < PREFIX_BYTES + length) break;
      const whole = this.#first(PREFIX_BYTES + length);
      messages.push(whole.subarray(PREFIX_BYTES, PREFIX_BYTES + length));
      this.#bytes -= PREFIX_BYTES + length;
      this.#pieces = this.#bytes === 0 ? [] : [whole.subarray(PREFIX_BYTES + length)];
    }
    return messages;
  }

  /** All that came in one piece where its first `bytes` are not. */
  #first(bytes: number): Buffer {
    const [head] = this.#pieces;
    if (head !== undefined && (head.length >= bytes || this.#pieces.length === 1)) return head;
    const joined = Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces = [joined];
    return joined;
  }
}
