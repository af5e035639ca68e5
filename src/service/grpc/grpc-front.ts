import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { DescService } from "@bufbuild/protobuf";
import { identifyCaller } from "../authenticate.ts";
import { valuesOf } from "../connect-context.ts";
import { wireError } from "../connect-errors.ts";
import type { FrontOptions } from "../front-options.ts";
import { LiveRpc } from "../rpc.ts";
import type { Service, ServiceRouter } from "../service.ts";
import { GrpcAnswer } from "./answer.ts";
import { GrpcRequest, plainGrpc } from "./grpc-request.ts";
import { answerFrame, compressedFrame, type GrpcMethod, grpcMethod, parseRequest } from "./method.ts";
import { readMessage } from "./request-message.ts";
import { errorTrailers, OK_TRAILERS } from "./status-trailers.ts";

const HEADERS: OutgoingHttpHeaders = { ":status": 200, "content-type": "application/grpc+proto" };
/** Of answers whose messages may be compressed. */
const GZIP_HEADERS: OutgoingHttpHeaders = { ...HEADERS, "grpc-encoding": "gzip" };

/**
 * Serves plain gRPC (messages in binary form, requests not compressed, one message a request) on Node's streams: through
 * Connect a call takes twice the CPU time, the gateway's own included, and an idle stream 25 KiB more. The same handlers,
 * errors and limits: what a caller can see of the two must not differ.
 */
export class GrpcFront implements ServiceRouter {
  readonly #options: FrontOptions;
  /** By path. */
  readonly #methods = new Map<string, GrpcMethod>();

  constructor(options: FrontOptions) {
    this.#options = options;
  }

  service<T extends DescService>(service: T, implementation: Service<T>): void {
    for (const desc of service.methods) {
      const method = grpcMethod(desc, implementation);
      if (method !== undefined) this.#methods.set(`/${method.name}`, method);
    }
  }

  /** Serves a stream, or leaves it to Connect. */
  take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
    const method = this.#methods.get(headers[":path"] ?? "");
    const plain = method === undefined ? undefined : plainGrpc(headers);
    const { session } = stream;
    if (method === undefined || plain === undefined || session === undefined) return false;
    const request = new GrpcRequest(stream, plain, method.name, this.#options.shown);
    const rpc = new LiveRpc(request, this.#options.rpcs);
    const answer = new GrpcAnswer(stream, {
      // Streams are not compressed: a reader's window would hold hundreds of times its size of text.
      headers: plain.gzip && !method.streams ? GZIP_HEADERS : HEADERS,
      connection: session,
      unread: this.#options.unread,
      reset: () => request.reset(),
    });
    // What ends a stream is told by its closing.
    stream.on("error", () => undefined);
    stream.once("close", () => {
      answer.close();
      rpc.close(answer.ended, session.destroyed);
    });
    this.#serve({ stream, method, gzip: plain.gzip, rpc, answer }).catch((error: unknown) => {
      this.#options.logger.warn("rpc-answer-failed", { method: rpc.method, error });
      rpc.reset();
    });
    return true;
  }

  async #serve(exchange: Exchange): Promise<void> {
    const { stream, method, rpc, answer } = exchange;
    const { requestBytes } = this.#options;
    try {
      const asked = identifyCaller(rpc, this.#options.authenticate);
      if (asked !== undefined) await asked;
      const message = await readMessage(stream, {
        maxBytes: requestBytes,
        kind: method.streams ? "server-streaming" : "unary",
        parse: (bytes) => parseRequest(method.input, bytes),
      });
      const given = method.handle(message, { values: valuesOf(rpc) });
      await (method.streams ? answerStream(exchange, given) : answerOnce(exchange, given));
    } catch (error) {
      rpc.end();
      answer.end(errorTrailers(wireError(error, rpc, this.#options)));
    }
  }
}

/** One request and its answer. */
interface Exchange {
  readonly stream: ServerHttp2Stream;
  readonly method: GrpcMethod;
  /** Whether the caller takes answers compressed. */
  readonly gzip: boolean;
  readonly rpc: LiveRpc;
  readonly answer: GrpcAnswer;
}

async function answerOnce({ method, gzip, rpc, answer }: Exchange, given: unknown): Promise<void> {
  const message = await given;
  rpc.answered = true;
  rpc.end();
  const { output } = method;
  answer.end(OK_TRAILERS, gzip ? await compressedFrame(output, message) : answerFrame(output, message));
}

async function answerStream({ stream, method, rpc, answer }: Exchange, given: unknown): Promise<void> {
  rpc.answered = true;
  for await (const message of given as AsyncIterable<unknown>) {
    const room = answer.write(answerFrame(method.output, message));
    if (room !== undefined) await room;
    // Nobody is left who would read the next one.
    if (!stream.writable) return;
  }
  rpc.end();
  answer.end(OK_TRAILERS);
}
