import { once } from "node:events";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { AUTHORITY } from "./certificate-folder.ts";
import type { RawSocket } from "./raw.ts";

/** A connection over TLS with all it received so far. */
export interface RawTls extends RawSocket {
  readonly socket: TLSSocket;
}

/** Connects to a port of loopback. @throws what ends the handshake. */
export async function rawTls(port: number, options: ConnectionOptions = {}): Promise<RawTls> {
  const socket = connect({ port, host: "127.0.0.1", ca: AUTHORITY.cert, ...options });
  let text = "";
  socket.setEncoding("latin1").on("data", (piece: string) => {
    text += piece;
  });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await once(socket, "secureConnect");
  // A reset is one way of being closed.
  socket.on("error", () => undefined);
  return {
    socket,
    closed,
    text: () => text,
    async received(pattern) {
      while (!pattern.test(text)) {
        if (socket.closed) throw new Error(`closed after ${JSON.stringify(text)}`);
        await Promise.race([once(socket, "data"), closed]);
      }
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
}

/** Serial number of the certificate a port shows to a new connection. */
export async function serialOf(port: number): Promise<string> {
  using raw = await rawTls(port);
  return raw.socket.getPeerCertificate().serialNumber;
}
