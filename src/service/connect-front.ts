import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, createConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { compressionGzip, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { identifyCaller } from "./authenticate.ts";
import { rpcOf, valuesOf } from "./connect-context.ts";
import { clientError, describeOwnErrors, handlerErrors } from "./connect-errors.ts";
import type { FrontOptions } from "./front-options.ts";
import { plainGrpcMessage } from "./grpc-message.ts";
import type { NodeRequest, NodeResponse, RequestHandler } from "./listener.ts";
import { COMPRESS_MIN_BYTES, MAX_ANSWER_BYTES } from "./message-limits.ts";
import { connectionOf, webHeaders } from "./node-request.ts";
import { peerOf } from "./peer.ts";
import { LiveRpc } from "./rpc.ts";
import { rpcTimeout } from "./rpc-timeout.ts";
import type { Service, ServiceRouter } from "./service.ts";

/** What the Connect front needs. */
export interface ConnectFrontOptions extends FrontOptions {
  /** Registers the services. */
  readonly routes: (router: ServiceRouter) => void;
  /** Answers what is no RPC. */
  readonly fallback: RequestHandler;
}

/**
 * Serves the services over gRPC, gRPC-Web and Connect. Stands in for connectNodeAdapter, in which a malformed Host or
 * :authority ends the process, and which logs to the console.
 */
export function createConnectFront(options: ConnectFrontOptions): RequestHandler {
  const router = createConnectRouter({
    // brotli at Node's default quality takes 66 ms for 40 KB.
    acceptCompression: [compressionGzip],
    compressMinBytes: COMPRESS_MIN_BYTES,
    readMaxBytes: options.requestBytes,
    writeMaxBytes: MAX_ANSWER_BYTES,
    // Ignoring them would call a tool without arguments where `arguments_json` is misspelt.
    jsonOptions: { ignoreUnknownFields: false },
    interceptors: [handlerErrors(options.logger)],
    requestGate: (context) => openGate(context, options),
  });
  options.routes({
    service<T extends DescService>(service: T, implementation: Service<T>): void {
      // What takes a part of Connect's context takes the whole, which the compiler does not see through the mapping.
      const whole: object = implementation;
      router.service(service, whole);
    },
  });
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    const handler = handlers.get(path);
    try {
      if (handler === undefined) options.fallback(request, response);
      else serve(handler, { request, response }, options);
    } catch (error) {
      // An exception here would end the process.
      options.logger.error("request-failed", { path, error });
      reset(response);
    }
  };
}

/** Runs when the headers are there and the body is not yet read. */
async function openGate(context: HandlerContext, options: ConnectFrontOptions): Promise<void> {
  const rpc = rpcOf(context.values);
  describeOwnErrors(context, rpc, options);
  try {
    await identifyCaller(rpc, options.authenticate);
  } catch (error) {
    throw clientError(error, rpc, options.logger);
  }
}

/** A request and its response. */
interface Exchange {
  readonly request: NodeRequest;
  readonly response: NodeResponse;
}

function serve(handler: UniversalHandler, { request, response }: Exchange, options: ConnectFrontOptions): void {
  const headers = webHeaders(request);
  const timeout = rpcTimeout(headers);
  // A malformed one stays, for Connect to refuse.
  if (timeout?.timeoutMs !== undefined) headers.delete(timeout.header);
  if (handler.method.methodKind === "server_streaming") refuseCompression(headers);
  const rpc = new LiveRpc(
    {
      method: handler.requestPath.slice(1),
      headers,
      peer: () => peerOf(connectionOf(request), options.shown),
      binary: !/json/.test(headers.get("content-type") ?? "json"),
      timeoutMs: timeout?.timeoutMs,
      bodyArrived: () => request.readableEnded || handler.method.methodKind === "bidi_streaming",
      reset: () => reset(response),
    },
    options.rpcs,
  );
  const connection = "stream" in response ? response.stream.session : request.socket;
  response.once("close", () => {
    rpc.close(response.writableEnded, connection?.destroyed !== false);
    // Connect waits for this where a write met a full socket, and Node does not always fail such a write.
    if (!response.writableFinished) response.emit("drain");
  });
  handler(universalRequest(request, headers, rpc.signal, valuesOf(rpc)))
    .then((answer) => {
      const counted = options.unread.counted(answer, request, response, () => reset(response));
      return universalResponseToNodeResponse(plainGrpcMessage(counted), response);
    })
    .catch((error: unknown) => {
      // Connect's word for a caller that went away while the answer was written.
      const gone = rpc.signal.aborted || (error instanceof ConnectError && error.code === Code.Aborted);
      if (!gone) options.logger.warn("rpc-answer-failed", { method: rpc.method, error });
      reset(response);
    });
}

/**
 * Streams go out uncompressed: a reader's window would hold hundreds of times its size of text that compresses well,
 * and the upstream would be read that far ahead of the reader.
 */
function refuseCompression(headers: Headers): void {
  for (const name of ["accept-encoding", "connect-accept-encoding", "grpc-accept-encoding"]) headers.delete(name);
}

/** Ends an exchange without more ado; an HTTP/1 connection goes with it. */
function reset(response: NodeResponse): void {
  if (response.destroyed) return;
  if ("stream" in response) response.stream.close(ENHANCE_YOUR_CALM);
  else response.destroy();
}

/** What gRPC clients know as RESOURCE_EXHAUSTED. Source: gRPC over HTTP/2 protocol, "Errors". */
const ENHANCE_YOUR_CALM = 0xb;

function universalRequest(
  request: NodeRequest,
  header: Headers,
  signal: AbortSignal,
  contextValues: ContextValues,
): UniversalServerRequest {
  return {
    httpVersion: request.httpVersion,
    method: request.method ?? "",
    // Only the query counts, and the caller's own authority may be no authority at all.
    url: `http://gateway${request.url}`,
    header,
    body: request.iterator({ destroyOnReturn: false }),
    signal,
    contextValues,
  };
}
