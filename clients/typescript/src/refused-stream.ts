import type { Interceptor, StreamRequest } from "@connectrpc/connect";
import { ConnectError } from "@connectrpc/connect";
import { delay } from "./abort.ts";

/** Waits before each further attempt, in milliseconds. The first is at once: the next connection is already there. */
const RETRY_DELAYS_MS = [0, 20, 50, 120, 300];

/**
 * Whether the server refused the HTTP/2 stream, as it does while a connection is being closed or when too many streams
 * are open. Such a request was never processed. Source: RFC 9113, section 8.7.
 */
export function isRefusedStream(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return false;
  const { cause } = error;
  // Node's own error, never the text of a server's status: that comes without a cause.
  return (
    cause instanceof Error &&
    "code" in cause &&
    cause.code === "ERR_HTTP2_STREAM_ERROR" &&
    cause.message.endsWith("NGHTTP2_REFUSED_STREAM")
  );
}

/**
 * Sends a request again that the server refused to process, at most five times. Nothing else is ever sent twice: for
 * any other error nobody knows whether the call took effect. connect-node does not do this by itself.
 */
export const retryRefusedStreams: Interceptor = (next) => async (request) => {
  const { methodKind } = request.method;
  if (methodKind === "client_streaming" || methodKind === "bidi_streaming") return next(request);
  const repeatable = request.stream ? await repeatableRequest(request) : () => request;
  for (const delayMs of RETRY_DELAYS_MS) {
    try {
      return await next(repeatable());
    } catch (error) {
      if (!isRefusedStream(error)) throw error;
      await delay(delayMs, request.signal);
    }
  }
  return next(repeatable());
};

/** A server-streaming request holds one message, which can only be read once: keeps it for the next attempt. */
async function repeatableRequest(request: StreamRequest): Promise<() => StreamRequest> {
  const messages: unknown[] = [];
  for await (const message of request.message) messages.push(message);
  return () => ({ ...request, message: replay(messages) }) as StreamRequest;
}

async function* replay(messages: readonly unknown[]): AsyncGenerator {
  yield* messages;
}
