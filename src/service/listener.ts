import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { ListenAddress } from "../core/listen-address.ts";

/** A request of either HTTP version. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;

/** Its response. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Answers every request. Never throws. */
export type RequestHandler = (request: NodeRequest, response: NodeResponse) => void;

/** Serves a stream of HTTP/2 by itself, or says `false` and leaves it as it is. Never throws. */
export type StreamTaker = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean;

/** Accepts connections and hands their requests to a handler. */
export interface Listener {
  /** Resolves to the real address once connections are accepted. @throws GatewayError where that cannot be. Once. */
  listen(): Promise<ListenAddress>;
  /** Accepts no more and tells each peer to go away; what runs goes on. Resolves when the last connection is gone. */
  close(): Promise<void>;
  /** Cuts every connection that is left. */
  destroy(): void;
}
