import { setTimeout as delay } from "node:timers/promises";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { type CallResponse, ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";

/** All methods of the gateway over gRPC, and the call most tests make. */
export interface GatewayClient extends Disposable {
  readonly service: Client<typeof ToolGatewayService>;
  /** Calls a tool with a JSON object. */
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<CallResponse>;
}

/** Connects to a gateway on loopback. */
export function createGatewayClient(port: number): GatewayClient {
  const baseUrl = `http://127.0.0.1:${port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const service = createClient(ToolGatewayService, createGrpcTransport({ baseUrl, sessionManager }));
  return {
    service,
    call: (name, args = {}) =>
      service.call({ invocation: { name, arguments: { case: "argumentsJson", value: JSON.stringify(args) } } }),
    [Symbol.dispose]: () => sessionManager.abort(),
  };
}

/** The structured result. */
export function valueOf(response: CallResponse): unknown {
  const json = response.result?.structuredJson;
  return json === undefined ? undefined : JSON.parse(json);
}

/** All text parts of the result. */
export function textOf(response: CallResponse): string {
  const parts = response.result?.content ?? [];
  return parts.map(({ part }) => (part.case === "text" ? part.value : "")).join("");
}

/** The gateway's word for why a request failed. */
export function reasonOf(error: unknown): string | undefined {
  return error instanceof ConnectError ? error.findDetails(ErrorInfoSchema)[0]?.reason : undefined;
}

/**
 * Tries again and again until `accept` takes the answer; only an unknown tool is tried over. Resolves with the
 * milliseconds that took.
 */
export async function retryUntil<T>(
  attempt: () => Promise<T>,
  accept: (answer: T) => boolean,
  limitMs = 60_000,
): Promise<number> {
  const start = performance.now();
  while (performance.now() - start < limitMs) {
    try {
      if (accept(await attempt())) return performance.now() - start;
    } catch (error) {
      if (reasonOf(error) !== "TOOL_NOT_FOUND") throw error;
    }
    await delay(5);
  }
  throw new Error(`not so after ${limitMs} ms`);
}
