import { create } from "@bufbuild/protobuf";
import {
  type CallRequest,
  type CallResponse,
  CallResponseSchema,
  type CallStreamRequest,
  type CallStreamResponse,
  CallStreamResponseSchema,
} from "../gen/toolgate/v1/tool_gateway_service_pb.ts";

/** Name that asks an echo server for one message only. */
export const ECHO_FIRST = "echo_first";

/** Time between the only message of such a stream and its end, so that the two cannot travel together. */
export const FIRST_PAUSE_MS = 5;

const TEXT = "x".repeat(1024);

/** What both echo servers answer: the arguments as the result, nothing looked up, nothing checked. */
export function echo(request: CallRequest): CallResponse {
  const given = request.invocation?.arguments;
  return create(CallResponseSchema, {
    callId: "019a0000-0000-7000-8000-000000000000",
    result: given?.case === "argumentsJson" ? { structuredJson: given.value } : {},
    stats: { attempts: 1 },
  });
}

/** One stream message with 1 KiB of text. */
export function echoPiece(sequence: number): CallStreamResponse {
  return create(CallStreamResponseSchema, {
    sequence: BigInt(sequence),
    event: { case: "output", value: { index: 0, delta: { case: "text", value: TEXT } } },
  });
}

/** Whether a stream is to send one message and then end, or as many as are taken. */
export function wantsOnePiece(request: CallStreamRequest): boolean {
  return request.invocation?.name === ECHO_FIRST;
}
