import { promisify } from "node:util";
import { gzip } from "node:zlib";
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  isMessage,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { messageBytes } from "../../wire/message-bytes.ts";
import { COMPRESS_MIN_BYTES, MAX_ANSWER_BYTES } from "../message-limits.ts";
import type { RpcContext } from "../service.ts";
import { frameOf } from "./frame.ts";

const compress = promisify(gzip);

/** A method whose request is one message. */
export interface GrpcMethod {
  /** `toolgate.v1.ToolGatewayService/Call`. */
  readonly name: string;
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly streams: boolean;
  handle(request: MessageShape<DescMessage>, context: RpcContext): unknown;
}

/** The method as this front serves it; `undefined` where its requests are streams. */
export function grpcMethod(method: DescMethod, implementation: object): GrpcMethod | undefined {
  const { methodKind, input, output, localName } = method;
  if (methodKind !== "unary" && methodKind !== "server_streaming") return undefined;
  const handler: unknown = Reflect.get(implementation, localName);
  if (typeof handler !== "function") return undefined;
  return {
    name: `${method.parent.typeName}/${method.name}`,
    input,
    output,
    streams: methodKind === "server_streaming",
    handle: (request, context): unknown => Reflect.apply(handler, implementation, [request, context]),
  };
}

/** @throws ConnectError in Connect's words, like all of this file. */
export function parseRequest(input: DescMessage, bytes: Uint8Array): MessageShape<DescMessage> {
  try {
    return fromBinary(input, bytes);
  } catch (error) {
    throw new ConnectError(`parse binary: ${textOf(error)}`, Code.Internal);
  }
}

/** What a handler gave, as the frame of a message. */
export function answerFrame(output: DescMessage, answer: unknown): Buffer {
  return frameOf(serialize(output, answer));
}

/** The same, compressed where that is worth it. */
export async function compressedFrame(output: DescMessage, answer: unknown): Promise<Buffer> {
  const bytes = serialize(output, answer);
  return bytes.byteLength < COMPRESS_MIN_BYTES ? frameOf(bytes) : frameOf(await compress(bytes), true);
}

function serialize(output: DescMessage, answer: unknown): Uint8Array {
  const message = isMessage(answer, output) ? answer : create(output, answer as MessageInitShape<DescMessage>);
  const bytes = toBytes(output, message);
  if (bytes.byteLength <= MAX_ANSWER_BYTES) return bytes;
  const text = `message size ${bytes.byteLength} is larger than configured writeMaxBytes ${MAX_ANSWER_BYTES}`;
  throw new ConnectError(text, Code.ResourceExhausted);
}

function toBytes(output: DescMessage, message: MessageShape<DescMessage>): Uint8Array {
  try {
    return messageBytes(output, message);
  } catch (error) {
    throw new ConnectError(`serialize binary: ${textOf(error)}`, Code.Internal);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
