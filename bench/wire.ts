import { create, fromBinary, fromJsonString, toBinary, toJsonString } from "@bufbuild/protobuf";
import {
  type CallRequest,
  CallRequestSchema,
  type CallResponse,
  CallResponseSchema,
  CallStreamRequestSchema,
  type CallStreamResponse,
  CallStreamResponseSchema,
} from "../gen/toolgate/v1/tool_gateway_service_pb.ts";

/** Arguments of every call: about 120 bytes. */
export const ARGUMENTS_JSON = JSON.stringify({
  order_id: "SO20241001",
  include_history: false,
  note: "用于售后咨询、物流跟踪、客服查询",
  limit: 20,
});

/** Path of a method of the service. */
export function methodPath(method: "Call" | "CallStream"): string {
  return `/toolgate.v1.ToolGatewayService/${method}`;
}

/** A request of about 200 bytes. */
export function callRequest(name: string, validateOnly: boolean): CallRequest {
  return create(CallRequestSchema, {
    invocation: { name, validateOnly, arguments: { case: "argumentsJson", value: ARGUMENTS_JSON } },
  });
}

/** The request as it goes over the wire, for both kinds of call. */
export function encodeRequest(
  stream: boolean,
  encoding: "proto" | "json",
  name: string,
  validateOnly: boolean,
): Uint8Array {
  const request = callRequest(name, validateOnly);
  if (stream) {
    const message = create(
      CallStreamRequestSchema,
      request.invocation === undefined ? {} : { invocation: request.invocation },
    );
    return encoding === "proto"
      ? toBinary(CallStreamRequestSchema, message)
      : Buffer.from(toJsonString(CallStreamRequestSchema, message));
  }
  return encoding === "proto"
    ? toBinary(CallRequestSchema, request)
    : Buffer.from(toJsonString(CallRequestSchema, request));
}

/** Decodes the answer of a unary call. */
export function decodeResponse(bytes: Uint8Array, encoding: "proto" | "json"): CallResponse {
  return encoding === "proto"
    ? fromBinary(CallResponseSchema, bytes)
    : fromJsonString(CallResponseSchema, Buffer.from(bytes).toString("utf8"));
}

/** Decodes one message of a stream. */
export function decodeEvent(bytes: Uint8Array, encoding: "proto" | "json"): CallStreamResponse {
  return encoding === "proto"
    ? fromBinary(CallStreamResponseSchema, bytes)
    : fromJsonString(CallStreamResponseSchema, Buffer.from(bytes).toString("utf8"));
}

/** Wraps a message in the five bytes that gRPC and Connect streams put before each: flags and length. */
export function envelope(bytes: Uint8Array): Buffer {
  const framed = Buffer.alloc(5 + bytes.length);
  framed.writeUInt32BE(bytes.length, 1);
  framed.set(bytes, 5);
  return framed;
}

/** One enveloped message. */
interface Enveloped {
  readonly flags: number;
  readonly bytes: Buffer;
}

/** The messages themselves. @throws where the last one of a Connect stream carries an error. */
export function messagesOf(enveloped: readonly Enveloped[]): Buffer[] {
  const last = enveloped.find(({ flags }) => (flags & 2) !== 0);
  const end = last?.bytes.toString("utf8") ?? "";
  if (end.includes('"error"')) throw new Error(`the stream failed: ${end.slice(0, 300)}`);
  return enveloped.filter((entry) => entry !== last).map(({ bytes }) => bytes);
}

/** Cuts a body into its enveloped messages. */
export class EnvelopeReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The messages that are whole now. */
  push(chunk: Buffer): Enveloped[] {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const whole: Enveloped[] = [];
    while (data.length >= 5) {
      const length = data.readUInt32BE(1);
      if (data.length < 5 + length) break;
      whole.push({ flags: data.readUInt8(0), bytes: data.subarray(5, 5 + length) });
      data = data.subarray(5 + length);
    }
    this.#rest = data;
    return whole;
  }
}
