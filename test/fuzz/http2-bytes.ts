import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  GOAWAY,
  grpcFields,
  HEADERS,
  literal,
  PING,
  preface,
  RST_STREAM,
  SETTINGS,
  uint,
} from "../service/frames.ts";
import { envelope } from "../service/raw.ts";
import type { Dice } from "./dice.ts";
import { cut } from "./http1-bytes.ts";
import { METHODS, makeMessage } from "./wire-messages.ts";

const PRIORITY = 2;
const PUSH_PROMISE = 5;
const WINDOW_UPDATE = 8;
const PADDED = 8;
const HAS_PRIORITY = 32;
const LARGEST = 2 ** 31 - 1;

/** Bytes of one HTTP/2 connection, as pieces to be written one by one. */
export function makeHttp2(dice: Dice): string[] {
  const maker = new FrameMaker(dice);
  const frames = dice.some(1, 12, () => maker.next());
  const bytes = Buffer.concat([begin(dice), ...frames.flat()]).toString("latin1");
  return dice.oneIn(2) ? [bytes] : cut(dice, bytes);
}

function begin(dice: Dice): Buffer {
  if (dice.oneIn(30)) return Buffer.from(dice.slips(preface().toString("latin1"), ["\0", "\r\n", "PRI"]), "latin1");
  return preface(...dice.some(0, 4, () => setting(dice)));
}

function setting(dice: Dice): readonly [id: number, value: number] {
  const value = dice.pick([0, 1, 2, 100, 16_383, 16_384, 65_535, 2 ** 24 - 1, 2 ** 24, LARGEST, 2 ** 31, 2 ** 32 - 1]);
  return [dice.number(dice.oneIn(5) ? 65_536 : 10), value];
}

/** Makes frames of one connection, each a list of those that belong together. */
class FrameMaker {
  readonly #dice: Dice;
  #stream = -1;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  next(): Buffer[] {
    const dice = this.#dice;
    switch (dice.number(14)) {
      case 0:
        return [this.#settings()];
      case 1: {
        const step = uint(4, dice.pick([0, 1, 1_000, LARGEST, 2 ** 31, 2 ** 32 - 1]));
        return [frame(WINDOW_UPDATE, dice.number(2), this.#known(), this.#sized(step))];
      }
      case 2:
      case 3:
      case 4:
      case 5:
        return [this.#small()];
      case 6:
        return [frame(dice.number(256), dice.number(256), this.#known(), this.#random(100))];
      case 7:
        return [this.#lying()];
      case 8:
        return this.#split();
      case 9:
        return [frame(HEADERS, dice.number(64), this.#opened(), this.#block())];
      default:
        return this.#request();
    }
  }

  /** A frame of a few bytes, of the right length or not. */
  #small(): Buffer {
    const dice = this.#dice;
    switch (dice.number(5)) {
      case 0:
        return frame(RST_STREAM, 0, this.#known(), this.#sized(uint(4, dice.number(20))));
      case 1:
        return frame(PING, dice.number(2), dice.oneIn(5) ? 1 : 0, this.#sized(Buffer.alloc(8)));
      case 2:
        return frame(PRIORITY, 0, this.#known(), this.#sized(this.#priority()));
      case 3:
        return frame(PUSH_PROMISE, END_HEADERS, this.#known(), this.#sized(uint(4, 2)));
      default:
        return this.#goaway();
    }
  }

  /** A request of gRPC, or one that is nearly one. */
  #request(): Buffer[] {
    const dice = this.#dice;
    const stream = this.#opened();
    const block = dice.oneIn(4) ? this.#block() : grpcFields(dice.pick(METHODS));
    const bytes = this.#enveloped();
    const data = cut(dice, bytes.toString("latin1")).map((piece) => Buffer.from(piece, "latin1"));
    const flags = dice.oneIn(4) ? dice.number(256) : END_STREAM;
    return [
      frame(HEADERS, END_HEADERS, stream, block),
      ...(dice.oneIn(3) ? data.map((piece) => frame(DATA, 0, stream, piece)) : [frame(DATA, 0, stream, bytes)]),
      frame(DATA, flags, stream, dice.oneIn(4) ? this.#random(20) : new Uint8Array()),
    ];
  }

  #enveloped(): Buffer {
    const dice = this.#dice;
    const whole = envelope(makeMessage(dice), dice.oneIn(3) ? dice.pick([1, 2, 3, 128, 255]) : 0);
    if (dice.oneIn(4)) whole.writeUInt32BE(dice.pick([0, 1, whole.length, 5 * 2 ** 20, LARGEST, 2 ** 32 - 1]), 1);
    return dice.oneIn(8) ? Buffer.concat([whole, whole]) : whole;
  }

  /** A header block in pieces, at times with something else between them. */
  #split(): Buffer[] {
    const dice = this.#dice;
    const stream = this.#opened();
    const [first = "", ...rest] = cut(dice, grpcFields(dice.pick(METHODS)).toString("latin1"));
    const pieces = rest.map((piece, i) => {
      const last = i === rest.length - 1 && !dice.oneIn(6);
      const other = dice.oneIn(8) ? stream + 2 : stream;
      return frame(CONTINUATION, last ? END_HEADERS : 0, other, Buffer.from(piece, "latin1"));
    });
    const between = dice.oneIn(5) ? [frame(PING, 0, 0, Buffer.alloc(8))] : [];
    return [frame(HEADERS, END_STREAM, stream, Buffer.from(first, "latin1")), ...between, ...pieces];
  }

  /** Header fields: odd names and values, indexes of no entry, sizes of the table, strings in Huffman code. */
  #block(): Buffer {
    const dice = this.#dice;
    const parts = dice.some(0, 8, () => {
      switch (dice.number(7)) {
        case 0:
          return this.#random(30);
        case 1:
          return Buffer.from([0x20 | dice.number(32), 0xff, 0xff, dice.number(256)]);
        case 2:
          return Buffer.from([0x80 | dice.number(128)]);
        case 3:
          return literal(
            dice.pick(["", ":path", ":path", ":status", "Host", "te", "connection", "a b", "\0"]),
            dice.text(),
          );
        case 4:
          return literal(dice.pick([":method", ":scheme", ":authority", "content-type", "grpc-timeout"]), dice.text());
        case 5:
          return literal(
            dice.pick(["grpc-encoding", "x-bin", "content-length"]),
            dice.pick(["gzip", "=", "-1", "99", "x"]),
          );
        default:
          return Buffer.concat([Buffer.from([0x40, 0x80 | dice.number(20)]), this.#random(20)]);
      }
    });
    return Buffer.concat([dice.oneIn(2) ? grpcFields(dice.pick(METHODS)) : Buffer.alloc(0), ...parts]);
  }

  #settings(): Buffer {
    const dice = this.#dice;
    const values = dice
      .some(0, 4, () => setting(dice))
      .map(([id, value]) => Buffer.concat([uint(2, id), uint(4, value)]));
    return frame(SETTINGS, dice.oneIn(3) ? 1 : 0, dice.oneIn(8) ? 1 : 0, this.#sized(Buffer.concat(values)));
  }

  #goaway(): Buffer {
    return frame(
      GOAWAY,
      0,
      0,
      this.#sized(Buffer.concat([uint(4, this.#dice.number(10)), uint(4, this.#dice.number(20))])),
    );
  }

  #priority(): Buffer {
    return Buffer.concat([uint(4, this.#dice.pick([0, 1, 3, LARGEST, 2 ** 32 - 1])), uint(1, this.#dice.number(256))]);
  }

  /** A frame whose length is another one than it says. */
  #lying(): Buffer {
    const dice = this.#dice;
    const flags = dice.pick([0, END_STREAM, END_HEADERS, PADDED, PADDED | END_HEADERS, HAS_PRIORITY | END_HEADERS]);
    const made = frame(dice.pick([DATA, HEADERS]), flags, this.#known(), this.#random(40));
    if (dice.oneIn(2)) made.writeUIntBE(dice.pick([0, 1, 5, 255, 16_385, 2 ** 24 - 1]), 0, 3);
    return made;
  }

  /** As it is, or a byte shorter or longer. */
  #sized(payload: Buffer): Buffer {
    if (!this.#dice.oneIn(5)) return payload;
    return this.#dice.oneIn(2) ? payload.subarray(1) : Buffer.concat([payload, Buffer.from([0])]);
  }

  /** A stream that is new, unless it is none. */
  #opened(): number {
    if (this.#dice.oneIn(12)) return this.#dice.pick([0, 2, 1, LARGEST]);
    this.#stream += 2;
    return this.#stream;
  }

  #known(): number {
    return this.#dice.oneIn(3) ? this.#dice.pick([0, 1, 2, 3, 5, LARGEST]) : Math.max(this.#stream, 0);
  }

  #random(most: number): Buffer {
    return Buffer.from(this.#dice.some(0, most, () => this.#dice.number(256)));
  }
}
