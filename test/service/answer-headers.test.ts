import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { answerOf, CALL, CALL_STREAM, envelope, grpcHeaders, rawSession } from "./raw.ts";
import { serve } from "./serve.ts";

const SENT = { "x-tenant": "blue", "x-trace-bin": "AP+A", "grpc-accept-encoding": "gzip" };

/** Names of the fields an answer over gRPC has, without those of HTTP itself. */
async function fieldsOf(url: string, path: string, tool: string) {
  using session = rawSession(url);
  const stream = session.request(grpcHeaders(path, SENT));
  stream.end(envelope(toBinary(CallRequestSchema, create(CallRequestSchema, { invocation: { name: tool } }))));
  const { headers, trailers } = await answerOf(stream);
  const names = (fields: object): string[] =>
    Object.keys(fields)
      .filter((name) => !name.startsWith(":") && name !== "date")
      .toSorted();
  return { headers: names(headers), trailers: names(trailers) };
}

test("an answer over gRPC has the fields of the protocol and no other, unary and as a stream", async () => {
  await using served = await serve();
  for (const path of [CALL, CALL_STREAM]) {
    expect(await fieldsOf(served.url, path, "echo")).toEqual({
      // Streams are not compressed.
      headers: path === CALL ? ["content-type", "grpc-encoding"] : ["content-type"],
      trailers: ["grpc-status"],
    });
  }
});

test("an error over gRPC has its details in a trailer, unary and in a stream", async () => {
  await using served = await serve();
  for (const path of [CALL, CALL_STREAM]) {
    const { headers, trailers } = await fieldsOf(served.url, path, "nothing");
    expect(trailers).toEqual(["grpc-message", "grpc-status", "grpc-status-details-bin"]);
    expect(headers).toContain("content-type");
    expect(headers.filter((name) => !/^(content-type|grpc-)/.test(name))).toEqual([]);
  }
});

test("an answer over Connect gives back nothing of the caller's and tells nothing of the server", async () => {
  await using served = await serve();
  for (const name of ["echo", "nothing"]) {
    const response = await fetch(served.url + CALL, {
      method: "POST",
      headers: { "content-type": "application/json", ...SENT },
      body: JSON.stringify({ invocation: { name } }),
    });
    await response.text();
    const http = ["connection", "content-length", "date", "keep-alive", "transfer-encoding", "vary"];
    const fields = [...response.headers.keys()].filter((field) => !http.includes(field));
    expect(fields.filter((field) => !/^(content-(type|encoding)|accept-(post|encoding)|connect-)/.test(field))).toEqual(
      [],
    );
  }
});
