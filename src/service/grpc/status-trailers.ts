import type { OutgoingHttpHeaders } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { type ConnectError, encodeBinaryHeader } from "@connectrpc/connect";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.ts";
import { escapeGrpcMessage } from "../grpc-message.ts";

/** Trailers of an RPC that went well. */
export const OK_TRAILERS: OutgoingHttpHeaders = { "grpc-status": "0" };

/** Trailers that tell an error with its details. Source: gRPC over HTTP/2 protocol, "Responses". */
export function errorTrailers({ code, rawMessage, details }: ConnectError): OutgoingHttpHeaders {
  const status = create(StatusSchema, {
    code,
    message: rawMessage,
    details: details.map((detail) =>
      "desc" in detail
        ? anyPack(detail.desc, create(detail.desc, detail.value))
        : { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value },
    ),
  });
  return {
    "grpc-status": String(code),
    "grpc-message": escapeGrpcMessage(rawMessage),
    "grpc-status-details-bin": encodeBinaryHeader(status, StatusSchema),
  };
}
