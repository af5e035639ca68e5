import type { Socket } from "node:net";
import type { Clock } from "../core/clock.ts";

/** Source: RFC 9113, 3.4. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Who takes a socket on, all its bytes still to be read. */
export interface SocketTakers {
  /** Anything that is not HTTP/2, with its first bytes. */
  readonly http1: (socket: Socket, first: Buffer) => void;
  readonly http2: (socket: Socket) => void;
}

/** Takes new connections on. */
export interface Acceptor {
  accept(socket: Socket): void;
  /** Cuts the sockets that nobody has taken on yet. */
  destroy(): void;
}

/**
 * Tells HTTP/2 connections from others by their first bytes, since Node serves both on one port over TLS only. Sockets
 * that are silent for `sniffMs` are cut.
 */
export class PrefaceSniffer implements Acceptor {
  readonly #undecided = new Set<Socket>();
  readonly #takers: SocketTakers;
  readonly #clock: Clock;
  readonly #sniffMs: number;

  constructor(takers: SocketTakers, clock: Clock, sniffMs: number) {
    this.#takers = takers;
    this.#clock = clock;
    this.#sniffMs = sniffMs;
  }

  accept(socket: Socket): void {
    let read: Buffer = Buffer.alloc(0);
    const cut = (): void => void socket.destroy();
    const timer = this.#clock.after(this.#sniffMs, cut);
    const release = (): void => {
      timer[Symbol.dispose]();
      this.#undecided.delete(socket);
      socket.off("data", onData).off("error", cut).off("close", release);
    };
    const onData = (piece: Buffer): void => {
      read = read.length === 0 ? piece : Buffer.concat([read, piece]);
      const known = Math.min(read.length, PREFACE.length);
      const same = read.subarray(0, known).equals(PREFACE.subarray(0, known));
      if (same && known < PREFACE.length) return;
      release();
      socket.pause();
      socket.unshift(read);
      if (same) this.#takers.http2(socket);
      else this.#takers.http1(socket, read);
    };
    this.#undecided.add(socket);
    socket.on("data", onData).on("error", cut).on("close", release);
  }

  destroy(): void {
    for (const socket of this.#undecided) socket.destroy();
  }
}
