import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { credentials, Client as GrpcClient, Metadata } from "@grpc/grpc-js";
import type { InvocationSchema } from "../../gen/toolgate/v1/call_pb.ts";
import {
  CallRequestSchema,
  type CallResponse,
  CallResponseSchema,
  CallStreamRequestSchema,
  type CallStreamResponse,
  CallStreamResponseSchema,
  ToolGatewayService,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";

/** What to call. */
export type InvocationInit = MessageInitShape<typeof InvocationSchema>;

/** How long, and until when. */
export interface WireOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** A gateway client of one library and one protocol. */
export interface WireClient extends Disposable {
  call(invocation: InvocationInit, options?: WireOptions): Promise<CallResponse>;
  callStream(invocation: InvocationInit, options?: WireOptions): AsyncIterable<CallStreamResponse>;
}

/** Libraries and protocols the matrix tests speak. */
export const WIRE_CLIENTS = {
  "grpc-js over gRPC": grpcJsClient,
  "connect-node over gRPC": (port) => {
    const sessionManager = new Http2SessionManager(baseUrl(port));
    return connectClient(createGrpcTransport({ baseUrl: baseUrl(port), sessionManager }), () => sessionManager.abort());
  },
  "connect-node over Connect, HTTP/1.1": (port) =>
    connectClient(createConnectTransport({ baseUrl: baseUrl(port), httpVersion: "1.1" }), () => undefined),
  "connect-node over Connect, HTTP/2": (port) => {
    const sessionManager = new Http2SessionManager(baseUrl(port));
    const transport = createConnectTransport({ baseUrl: baseUrl(port), httpVersion: "2", sessionManager });
    return connectClient(transport, () => sessionManager.abort());
  },
  "connect-node over gRPC-Web, HTTP/1.1": (port) =>
    connectClient(createGrpcWebTransport({ baseUrl: baseUrl(port), httpVersion: "1.1" }), () => undefined),
  "connect-node over gRPC-Web, HTTP/2": (port) => {
    const sessionManager = new Http2SessionManager(baseUrl(port));
    const transport = createGrpcWebTransport({ baseUrl: baseUrl(port), httpVersion: "2", sessionManager });
    return connectClient(transport, () => sessionManager.abort());
  },
} as const satisfies Readonly<Record<string, (port: number) => WireClient>>;

/** Name of one of {@link WIRE_CLIENTS}. */
export type WireClientName = keyof typeof WIRE_CLIENTS;

/** All names. */
export const WIRE_CLIENT_NAMES = Object.keys(WIRE_CLIENTS) as readonly WireClientName[];

function baseUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}

function connectClient(transport: Transport, close: () => void): WireClient {
  const client = createClient(ToolGatewayService, transport);
  return {
    call: (invocation, options) => client.call({ invocation }, options),
    callStream: (invocation, options) => client.callStream({ invocation }, options),
    [Symbol.dispose]: close,
  };
}

function grpcJsClient(port: number): WireClient {
  const client = new GrpcClient(`127.0.0.1:${port}`, credentials.createInsecure());
  const deadline = (options: WireOptions): { deadline?: number } =>
    options.timeoutMs === undefined ? {} : { deadline: Date.now() + options.timeoutMs };
  return {
    call: (invocation, options = {}) =>
      new Promise((resolve, reject) => {
        const call = client.makeUnaryRequest(
          "/toolgate.v1.ToolGatewayService/Call",
          (request) => Buffer.from(toBinary(CallRequestSchema, request)),
          (bytes) => fromBinary(CallResponseSchema, bytes),
          create(CallRequestSchema, { invocation }),
          new Metadata(),
          deadline(options),
          (error, response) => {
            if (error !== null) reject(error);
            else if (response !== undefined) resolve(response);
          },
        );
        options.signal?.addEventListener("abort", () => call.cancel(), { once: true });
      }),
    async *callStream(invocation, options = {}) {
      const call = client.makeServerStreamRequest(
        "/toolgate.v1.ToolGatewayService/CallStream",
        (request) => Buffer.from(toBinary(CallStreamRequestSchema, request)),
        (bytes) => fromBinary(CallStreamResponseSchema, bytes),
        create(CallStreamRequestSchema, { invocation }),
        new Metadata(),
        deadline(options),
      );
      options.signal?.addEventListener("abort", () => call.cancel(), { once: true });
      try {
        for await (const message of call) yield message as CallStreamResponse;
      } finally {
        call.cancel();
      }
    },
    [Symbol.dispose]: () => client.close(),
  };
}
