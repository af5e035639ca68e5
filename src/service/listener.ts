import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** A request of either HTTP version. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;

/** Its response. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Answers every request. Never throws. */
export type RequestHandler = (request: NodeRequest, response: NodeResponse) => void;

/** Where a listener listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Accepts connections of one kind and hands their requests to a handler. Plaintext TCP is one; TLS with ALPN and Unix
 * sockets are others beside it, over the same handler.
 */
export interface Listener {
  /** Resolves to the real address once connections are accepted. @throws GatewayError where that cannot be. */
  listen(): Promise<ListenAddress>;
  /** Accepts no more and tells each peer to go away; what runs goes on. Resolves when the last connection is gone. */
  close(): Promise<void>;
  /** Cuts every connection that is left. */
  destroy(): void;
}
