import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server, type Http2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../clients/typescript/src/gen/google/rpc/error_details_pb.ts";
import { type Effect, ToolErrorDetailSchema } from "../../clients/typescript/src/gen/toolgate/v1/errors_pb.ts";
import { OperatorService } from "../../clients/typescript/src/gen/toolgate/v1/operator_service_pb.ts";
import {
  type CallStreamResponseSchema,
  ToolGatewayService,
} from "../../clients/typescript/src/gen/toolgate/v1/tool_gateway_service_pb.ts";

/** A message of a streamed call. */
export type StreamResponse = MessageInitShape<typeof CallStreamResponseSchema>;

/** A promise that is settled from outside, as Promise.withResolvers of ES2024. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

/** Makes one. */
export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** What the fake answers; a method that is left out is unimplemented. */
export interface FakeServices {
  readonly gateway?: Partial<ServiceImpl<typeof ToolGatewayService>>;
  readonly operator?: Partial<ServiceImpl<typeof OperatorService>>;
}

/** A gateway of the test's own making, on a free port of 127.0.0.1. */
export interface FakeGateway extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Cuts every connection, as a crash does. */
  cut(): void;
}

/** Starts one over HTTP/2 without TLS, or over HTTP/1.1. */
export async function startFakeGateway(services: FakeServices, http: "1.1" | "2" = "2"): Promise<FakeGateway> {
  const handler = connectNodeAdapter({
    routes(router) {
      router.service(ToolGatewayService, services.gateway ?? {});
      router.service(OperatorService, services.operator ?? {});
    },
  });
  const sessions = new Set<Http2Session>();
  const server = http === "2" ? createHttp2Server(handler) : createHttp1Server(handler);
  server.on("session", (session: Http2Session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  const cut = (): void => {
    for (const session of sessions) session.destroy();
    if ("closeAllConnections" in server) server.closeAllConnections();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    cut,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}

/** An error as the gateway sends it. */
export function gatewayError(
  code: Code,
  reason: string,
  message: string,
  details: {
    readonly effect?: Effect;
    readonly retryable?: boolean;
    readonly callId?: string;
    readonly retryAfterSeconds?: bigint;
    readonly violations?: readonly { field: string; description: string; reason: string }[];
    readonly metadata?: Record<string, string>;
  } = {},
): ConnectError {
  const { violations, retryAfterSeconds } = details;
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain: "toolgate", metadata: details.metadata ?? {} } },
    {
      desc: ToolErrorDetailSchema,
      value: {
        modelMessage: `for the model: ${message}`,
        retryable: details.retryable ?? false,
        callId: details.callId ?? "",
        ...(details.effect === undefined ? {} : { effect: details.effect }),
      },
    },
    ...(violations === undefined ? [] : [{ desc: BadRequestSchema, value: { fieldViolations: [...violations] } }]),
    ...(retryAfterSeconds === undefined
      ? []
      : [{ desc: RetryInfoSchema, value: { retryDelay: { seconds: retryAfterSeconds } } }]),
  ]);
}
