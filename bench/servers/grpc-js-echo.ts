import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServerWritableStream, type UntypedHandleCall } from "@grpc/grpc-js";
import {
  type CallRequest,
  CallRequestSchema,
  type CallResponse,
  CallResponseSchema,
  type CallStreamRequest,
  CallStreamRequestSchema,
  type CallStreamResponse,
  CallStreamResponseSchema,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { echo, echoPiece, FIRST_PAUSE_MS, wantsOnePiece } from "../echo.ts";
import { methodPath } from "../wire.ts";
import { reportReady } from "./ready.ts";

// The second baseline: grpc-js with protobuf-es as its codec.
const service = {
  call: {
    path: methodPath("Call"),
    requestStream: false,
    responseStream: false,
    requestSerialize: (value: CallRequest) => Buffer.from(toBinary(CallRequestSchema, value)),
    requestDeserialize: (bytes: Buffer) => fromBinary(CallRequestSchema, bytes),
    responseSerialize: (value: CallResponse) => Buffer.from(toBinary(CallResponseSchema, value)),
    responseDeserialize: (bytes: Buffer) => fromBinary(CallResponseSchema, bytes),
  },
  callStream: {
    path: methodPath("CallStream"),
    requestStream: false,
    responseStream: true,
    requestSerialize: (value: CallStreamRequest) => Buffer.from(toBinary(CallStreamRequestSchema, value)),
    requestDeserialize: (bytes: Buffer) => fromBinary(CallStreamRequestSchema, bytes),
    responseSerialize: (value: CallStreamResponse) => Buffer.from(toBinary(CallStreamResponseSchema, value)),
    responseDeserialize: (bytes: Buffer) => fromBinary(CallStreamResponseSchema, bytes),
  },
};

const handlers: Record<string, UntypedHandleCall> = {
  call: (request: { readonly request: CallRequest }, callback: (error: null, value: CallResponse) => void) =>
    callback(null, echo(request.request)),
  callStream: (stream: ServerWritableStream<CallStreamRequest, CallStreamResponse>) => {
    let sequence = 0;
    const more = (): void => {
      while (!stream.cancelled && stream.write(echoPiece(sequence++)));
    };
    if (wantsOnePiece(stream.request)) {
      stream.write(echoPiece(0));
      setTimeout(() => stream.end(), FIRST_PAUSE_MS);
      return;
    }
    stream.on("drain", more);
    more();
  },
};

const server = new Server();
server.addService(service, handlers);
const port = await new Promise<number>((resolve, reject) => {
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
    if (error === null) resolve(bound);
    else reject(error);
  });
});
reportReady({ h2: port });
