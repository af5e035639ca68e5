import { ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import { describeConnectError, toConnectError } from "../wire/error-codec.ts";
import { rpcOf } from "./connect-context.ts";
import type { LiveRpc } from "./rpc.ts";

/** Gives handlers' errors their form on the wire, and logs the cause of those that are the gateway's own fault. */
export function handlerErrors(logger: Logger): Interceptor {
  return (next) => async (request) => {
    const rpc = rpcOf(request.contextValues);
    try {
      const response = await next(request);
      rpc.answered = true;
      if (!response.stream) {
        rpc.end();
        return response;
      }
      return { ...response, message: withClientErrors(response.message, rpc, logger) };
    } catch (error) {
      throw clientError(error, rpc, logger);
    }
  };
}

/** Why the signal of an RPC that is over aborts. Made once: Connect would make an exception with a stack for each. */
const FINISHED = new Error("the RPC is over");

/** What describing Connect's own errors takes. */
export interface OwnErrorFacts {
  /** Limit for a request message. */
  readonly requestBytes: number;
  readonly logger: Logger;
}

/**
 * Gives the errors that Connect raises by itself their form on the wire. A body that is too large or cannot be parsed
 * fails before any interceptor runs; but Connect ends its context with each error before it writes that very error.
 */
export function describeOwnErrors(context: HandlerContext, rpc: LiveRpc, facts: OwnErrorFacts): void {
  const abort: unknown = Reflect.get(context, "abort");
  if (typeof abort !== "function") throw new TypeError("Connect's context cannot be ended");
  Object.assign(context, {
    abort(reason: unknown = FINISHED): void {
      if (reason instanceof ConnectError) describe(reason, rpc, facts);
      Reflect.apply(abort, context, [reason]);
    },
  });
}

/** An error as a client gets it, whether a handler raised it or the front. */
export function wireError(error: unknown, rpc: LiveRpc, facts: OwnErrorFacts): ConnectError {
  const known = clientError(error, rpc, facts.logger);
  describe(known, rpc, facts);
  return known;
}

function describe(error: ConnectError, rpc: LiveRpc, { requestBytes, logger }: OwnErrorFacts): void {
  const { answered, callId } = rpc;
  logFault(describeConnectError(error, { requestBytes, answered, callId }), rpc, logger);
}

/** An error as a client gets it. */
export function clientError(error: unknown, rpc: LiveRpc, logger: Logger): ConnectError {
  if (error instanceof ConnectError) return error;
  const known = isLostBody(error)
    ? new GatewayError("CALL_CANCELLED", "the caller went away before its request was there", { cause: error })
    : GatewayError.from(error);
  logFault(known, rpc, logger);
  return toConnectError(known, rpc.callId);
}

/** What Node throws, over HTTP/1 and HTTP/2, into whoever reads the body of a caller that is gone. */
const LOST_BODY_CODES: readonly unknown[] = ["ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE"];

/** Connect words it for unary RPCs alone. From everything else that connects only GatewayErrors come. */
function isLostBody(error: unknown): boolean {
  return error instanceof Error && "code" in error && LOST_BODY_CODES.includes(error.code);
}

function logFault(error: GatewayError | undefined, { method, callId }: LiveRpc, logger: Logger): void {
  if (error?.reason === "INTERNAL") logger.error("rpc-failed", { method, callId, error: error.cause ?? error });
}

async function* withClientErrors<T>(messages: AsyncIterable<T>, rpc: LiveRpc, logger: Logger): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    // Connect's own come out of a handler only where the next of several requests cannot be read: no fault of the answer.
    if (error instanceof ConnectError) rpc.answered = false;
    throw clientError(error, rpc, logger);
  } finally {
    rpc.end();
  }
}
