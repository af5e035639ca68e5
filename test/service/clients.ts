import { getCACertificates } from "node:tls";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import {
  createGrpcWebTransport as createFetchGrpcWebTransport,
  createConnectTransport as createFetchTransport,
} from "@connectrpc/connect-web";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import type { InvocationSchema } from "../../gen/toolgate/v1/call_pb.ts";
import { type ToolErrorDetail, ToolErrorDetailSchema } from "../../gen/toolgate/v1/errors_pb.ts";
import {
  CallRequestSchema,
  type CallResponse,
  CallResponseSchema,
  CallStreamRequestSchema,
  type CallStreamResponse,
  CallStreamResponseSchema,
  ToolGatewayService,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";

export interface ClientOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error as any client shows it. */
export class RpcFailure extends Error {
  readonly code: number;
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly fields: readonly string[];
  readonly detail: ToolErrorDetail | undefined;

  constructor(error: ConnectError, code: number = error.code) {
    super(error.rawMessage, { cause: error });
    const [info] = error.findDetails(ErrorInfoSchema);
    this.code = code;
    this.reason = info?.reason;
    this.metadata = info?.metadata ?? {};
    this.fields = error.findDetails(BadRequestSchema).flatMap((bad) => bad.fieldViolations.map(({ field }) => field));
    [this.detail] = error.findDetails(ToolErrorDetailSchema);
  }
}

export interface AnyClient extends Disposable {
  call(invocation: MessageInitShape<typeof InvocationSchema>, options?: ClientOptions): Promise<CallResponse>;
  stream(
    request: MessageInitShape<typeof CallStreamRequestSchema>,
    options?: ClientOptions,
  ): AsyncIterable<CallStreamResponse>;
}

/** Every kind of client that the one port serves, by name. */
export const CLIENTS: Readonly<Record<string, (url: string) => AnyClient>> = {
  "grpc-js": grpcJsClient,
  "connect-node gRPC": (baseUrl) => connectClient(createGrpcTransport({ baseUrl })),
  "connect-node Connect over HTTP/1.1": (baseUrl) =>
    connectClient(createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true })),
  "connect-node Connect over HTTP/2": (baseUrl) =>
    connectClient(createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true })),
  "connect-node gRPC-Web over HTTP/1.1": (baseUrl) =>
    connectClient(createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  "connect-node gRPC-Web over HTTP/2": (baseUrl) =>
    connectClient(createGrpcWebTransport({ baseUrl, httpVersion: "2" })),
  "connect-web Connect over fetch": (baseUrl) => connectClient(createFetchTransport({ baseUrl })),
  "connect-web gRPC-Web over fetch": (baseUrl) => connectClient(createFetchGrpcWebTransport({ baseUrl })),
};

/** The error a client shows for what `work` rejects with. */
export async function failureOf(work: Promise<unknown>): Promise<RpcFailure> {
  try {
    await work;
  } catch (error) {
    if (error instanceof RpcFailure) return error;
    if (error instanceof ConnectError) return new RpcFailure(error);
    throw error;
  }
  throw new Error("nothing was rejected");
}

/** All messages of a stream. */
export async function collect<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const message of messages) all.push(message);
  return all;
}

function connectClient(transport: Transport): AnyClient {
  const client = createClient(ToolGatewayService, transport);
  return {
    call: (invocation, options = {}) => client.call({ invocation }, options).catch(rethrow),
    async *stream(request, options = {}) {
      try {
        yield* client.callStream(request, options);
      } catch (error) {
        rethrow(error);
      }
    },
    [Symbol.dispose]: () => undefined,
  };
}

function rethrow(error: unknown): never {
  throw new RpcFailure(ConnectError.from(error));
}

const CALL = "/toolgate.v1.ToolGatewayService/Call";
const CALL_STREAM = "/toolgate.v1.ToolGatewayService/CallStream";

/** Those that Node trusts at this moment: grpc-js has a list of its own. */
function trusted(): Buffer {
  return Buffer.from(getCACertificates("default").join("\n"));
}

/** Takes `http:`, `https:` and `unix:`. */
export function grpcJsClient(url: string): AnyClient {
  const { protocol, host } = new URL(url);
  const secure = protocol === "https:" ? credentials.createSsl(trusted()) : credentials.createInsecure();
  const client = new Client(protocol === "unix:" ? url : host, secure);
  const callBytes = (message: MessageInitShape<typeof CallRequestSchema>): Buffer =>
    Buffer.from(toBinary(CallRequestSchema, create(CallRequestSchema, message)));
  const streamBytes = (message: MessageInitShape<typeof CallStreamRequestSchema>): Buffer =>
    Buffer.from(toBinary(CallStreamRequestSchema, create(CallStreamRequestSchema, message)));
  return {
    call: (invocation, options = {}) =>
      new Promise((resolve, reject) => {
        const call = client.makeUnaryRequest(
          CALL,
          callBytes,
          (bytes: Buffer) => fromBinary(CallResponseSchema, bytes),
          { invocation },
          metadataOf(options),
          callOptions(options),
          (error, response) => {
            if (error !== null) reject(grpcJsFailure(error));
            else if (response !== undefined) resolve(response);
          },
        );
        options.signal?.addEventListener("abort", () => call.cancel());
      }),
    async *stream(request, options = {}) {
      const call = client.makeServerStreamRequest(
        CALL_STREAM,
        streamBytes,
        (bytes: Buffer) => fromBinary(CallStreamResponseSchema, bytes),
        request,
        metadataOf(options),
        callOptions(options),
      );
      options.signal?.addEventListener("abort", () => call.cancel());
      try {
        yield* call as AsyncIterable<CallStreamResponse>;
      } catch (error) {
        throw grpcJsFailure(error as ServiceError);
      } finally {
        call.cancel();
      }
    },
    [Symbol.dispose]: () => client.close(),
  };
}

function metadataOf({ headers = {} }: ClientOptions): Metadata {
  return Metadata.fromHttp2Headers({ ...headers });
}

function callOptions({ timeoutMs }: ClientOptions): { deadline?: number } {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}

function grpcJsFailure(error: ServiceError): RpcFailure {
  const known = new ConnectError(error.details);
  const [status] = error.metadata.get("grpc-status-details-bin");
  if (status !== undefined) {
    known.details = fromBinary(StatusSchema, Buffer.from(status as Buffer)).details.map(({ typeUrl, value }) => ({
      type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
      value,
    }));
  }
  return new RpcFailure(known, error.code);
}
