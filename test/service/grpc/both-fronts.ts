import { once } from "node:events";
import type { OutgoingHttpHeaders } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { createRegistry, type DescMethod, fromBinary, toJson } from "@bufbuild/protobuf";
import { decodeBinaryHeader } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.ts";
import { ToolErrorDetailSchema } from "../../../gen/toolgate/v1/errors_pb.ts";
import { answerOf, grpcHeaders, rawSession } from "../raw.ts";

/** A gRPC request as it goes over the wire. */
export interface WireRequest {
  readonly method: DescMethod;
  readonly headers?: OutgoingHttpHeaders;
  /** Pieces of the body, each in a turn of its own. Default: none. */
  readonly body?: readonly Uint8Array[];
  /** Does not say that the body is over. Default: says so. */
  readonly open?: boolean;
  /** Says with the headers that there is no body. */
  readonly headersOnly?: boolean;
}

/** What came back, with the ids and times of this one call put out of the way. */
export interface WireAnswer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly messages: readonly unknown[];
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly details: unknown;
  readonly rstCode: number;
}

/** A query, which means nothing to gRPC, leaves a request to Connect. */
const FRONTS = { lean: "", connect: "?" } as const;

/** Which front a request is for. */
export type FrontName = keyof typeof FRONTS;

/** Sends a request to one of the fronts, on a connection of its own. */
export async function ask(url: string, front: FrontName, request: WireRequest): Promise<WireAnswer> {
  const { method, headers = {}, body = [], open = false, headersOnly = false } = request;
  using session = rawSession(url);
  const path = `/${method.parent.typeName}/${method.name}${FRONTS[front]}`;
  const stream = session.request(grpcHeaders(path, headers), { endStream: headersOnly });
  const answer = answerOf(stream);
  await once(stream, "ready");
  for (const piece of body) {
    if (stream.destroyed) break;
    stream.write(piece);
    await turn();
  }
  if (!open && !stream.destroyed) stream.end();
  const { status, headers: got, body: bytes, trailers, rstCode } = await answer;
  const { "grpc-status-details-bin": details, ...others } = trailers;
  const grpc = status === 200 && String(got["content-type"]).startsWith("application/grpc+");
  return {
    status,
    // Without a date and Node's symbols.
    headers: Object.fromEntries(Object.entries(got).filter(([name]) => name !== "date")),
    messages: grpc ? messagesOf(bytes, method) : [bytes.toString("utf8")],
    trailers: Object.fromEntries(Object.entries(others)),
    details: typeof details === "string" ? detailsOf(details) : undefined,
    rstCode,
  };
}

const registry = createRegistry(BadRequestSchema, ErrorInfoSchema, RetryInfoSchema, ToolErrorDetailSchema);

function detailsOf(header: string): unknown {
  return settled(toJson(StatusSchema, decodeBinaryHeader(header, StatusSchema), { registry }));
}

/** Each with the flag of its frame. */
function messagesOf(body: Buffer, { output }: DescMethod): unknown[] {
  const messages: unknown[] = [];
  for (let at = 0; at < body.length; ) {
    const [flag = 0, end] = [body[at], at + 5 + body.readUInt32BE(at + 1)];
    const bytes = body.subarray(at + 5, end);
    messages.push([flag, settled(toJson(output, fromBinary(output, flag === 0 ? bytes : gunzipSync(bytes))))]);
    at = end;
  }
  return messages;
}

/** Without what differs from call to call. */
function settled(json: unknown): unknown {
  const text = JSON.stringify(json)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}/g, "ID")
    .replaceAll(/"\d{4}-\d\d-\d\dT[^"]*Z"/g, '"TIME"')
    .replaceAll(/"\d+(\.\d+)?s"/g, '"DURATION"');
  return JSON.parse(text);
}
