import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { NodeRequest, NodeResponse } from "./listener.ts";

/**
 * Bytes of answers that the peers of a gateway have not taken yet, by connection. A peer that opens a thousand streams
 * and no window would otherwise have a thousand answers kept for it.
 */
export class UnreadAnswers {
  readonly #limitBytes: number;
  readonly #bytes = new WeakMap<object, number>();

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Adds to what a connection's peer has not taken, or takes it off where negative. Whether that is within bounds. */
  change(connection: object, bytes: number): boolean {
    const all = (this.#bytes.get(connection) ?? 0) + bytes;
    this.#bytes.set(connection, all);
    return bytes <= 0 || all <= this.#limitBytes;
  }

  /** The answer, counted while it is written. `refuse` ends it where its connection has too much of them. */
  counted(
    answer: UniversalServerResponse,
    request: NodeRequest,
    response: NodeResponse,
    refuse: () => void,
  ): UniversalServerResponse {
    const { body } = answer;
    if (body === undefined) return answer;
    const connection = "stream" in request ? (request.stream.session ?? request.socket) : request.socket;
    let unread = 0;
    let closed = false;
    const change = (bytes: number): void => {
      if (closed) return;
      unread += bytes;
      if (!this.change(connection, bytes)) refuse();
    };
    response.once("close", () => {
      change(-unread);
      closed = true;
    });
    return { ...answer, body: countedPieces(body, change) };
  }
}

/** A piece is taken when the next one is asked for. */
async function* countedPieces(
  body: AsyncIterable<Uint8Array>,
  change: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of body) {
    change(piece.byteLength);
    yield piece;
    change(-piece.byteLength);
  }
}
