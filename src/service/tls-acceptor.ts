import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Certificate } from "./certificate.ts";
import { type Acceptor, PrefaceSniffer, type SocketTakers } from "./preface.ts";

/** First byte of a TLS connection: a handshake record. Source: RFC 8446, 5.1. */
const HANDSHAKE = 0x16;

const WORDS = "this port speaks TLS: use https\n";

/** For HTTP/1. */
const HTTP1_REFUSAL = `HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${WORDS.length}\r\nconnection: close\r\n\r\n${WORDS}`;

/** For HTTP/2: empty SETTINGS, and GOAWAY with INADEQUATE_SECURITY. Source: RFC 9113, 6.5, 6.8 and 7. */
const HTTP2_REFUSAL = Buffer.concat([
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
  Buffer.from([0, 0, 8 + WORDS.length, 7, 0, 0, 0, 0, 0]),
  Buffer.from([0, 0, 0, 0, 0, 0, 0, 0x0c]),
  Buffer.from(WORDS),
]);

/** What a TLS acceptor works with. */
export interface TlsAcceptorDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time for each of: the first byte, the handshake, the first byte after it. */
  readonly sniffMs: number;
  /** Whether callers are asked for a certificate, and those without one of the authorities are let in. Default: not asked. */
  readonly clientAuth?: "optional" | "required";
}

/**
 * Puts TLS before the takers of sockets. HTTP/2 is offered by ALPN; a peer without ALPN gets HTTP/1.1. What speaks
 * plaintext is told so and cut. Nothing a peer does wrong is more than a debug line.
 */
export class TlsAcceptor implements Acceptor {
  readonly #deps: TlsAcceptorDeps;
  readonly #server: Server;
  /** The sockets that shake hands, by their peer: a tls.Server does not say which of them it has finished with. */
  readonly #handshakes = new Map<string, Socket>();
  /** Before TLS: what does not speak it. */
  readonly #outer: PrefaceSniffer;
  /** Within TLS. */
  readonly #inner: PrefaceSniffer;

  constructor({ http1, http2 }: SocketTakers, deps: TlsAcceptorDeps) {
    const { clock, logger, sniffMs } = deps;
    this.#deps = deps;
    const { clientAuth } = deps;
    this.#server = createServer({
      ALPNProtocols: ["h2", "http/1.1"],
      requestCert: clientAuth !== undefined,
      // What does not count is refused call by call then, with a word why.
      rejectUnauthorized: clientAuth === "required",
    });
    this.#server.on("secureConnection", (socket) => this.#secured(socket));
    this.#server.on("tlsClientError", (error, { remoteAddress }) => {
      logger.debug("tls-handshake-failed", { peer: remoteAddress, error });
    });
    this.#outer = new PrefaceSniffer(
      {
        http2: (socket) => this.#refuse(socket, HTTP2_REFUSAL),
        http1: (socket, first) =>
          first[0] === HANDSHAKE ? this.#shakeHands(socket) : this.#refuse(socket, HTTP1_REFUSAL),
      },
      clock,
      sniffMs,
    );
    // Bytes that are not what ALPN has settled are left to HTTP/2 to refuse.
    this.#inner = new PrefaceSniffer(
      { http2, http1: (socket, first) => (agreedOnHttp2(socket) ? http2(socket) : http1(socket, first)) },
      clock,
      sniffMs,
    );
  }

  /** Handshakes from now on are done with this certificate; connections that are open go on. */
  use({ cert, key, clientCa, minVersion }: Certificate): void {
    this.#server.setSecureContext({ cert, key, minVersion, ...(clientCa === undefined ? {} : { ca: clientCa }) });
  }

  accept(socket: Socket): void {
    this.#outer.accept(socket);
  }

  destroy(): void {
    this.#outer.destroy();
    for (const socket of this.#handshakes.values()) socket.destroy();
    this.#inner.destroy();
  }

  #shakeHands(socket: Socket): void {
    const peer = peerOf(socket);
    // tls.Server has a timeout of its own, which a peer that sends a byte now and then would never meet.
    const timer = this.#deps.clock.after(this.#deps.sniffMs, () => {
      if (this.#handshakes.get(peer) === socket) socket.destroy();
    });
    this.#handshakes.set(peer, socket);
    socket.once("close", () => {
      timer[Symbol.dispose]();
      if (this.#handshakes.get(peer) === socket) this.#handshakes.delete(peer);
    });
    this.#server.emit("connection", socket);
  }

  #secured(socket: TLSSocket): void {
    this.#handshakes.delete(peerOf(socket));
    this.#inner.accept(socket);
  }

  #refuse(socket: Socket, words: string | Buffer): void {
    this.#deps.logger.debug("plaintext-refused", { peer: socket.remoteAddress });
    socket.on("error", () => socket.destroy()).write(words);
    socket.destroySoon();
  }
}

function agreedOnHttp2(socket: Socket): boolean {
  return "alpnProtocol" in socket && socket.alpnProtocol === "h2";
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
