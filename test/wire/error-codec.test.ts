import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { Effect, ToolErrorDetailSchema } from "../../gen/toolgate/v1/errors_pb.ts";
import { ERROR_CATALOGUE, type ErrorReason, GatewayError } from "../../src/core/errors.ts";
import { describeConnectError, MAX_MESSAGE_BYTES, toConnectError } from "../../src/wire/error-codec.ts";
import { utf8Length } from "../../src/wire/utf8.ts";

const facts = { requestBytes: 4_194_304, answered: false, callId: undefined };

function reasonOf(error: ConnectError): string | undefined {
  return error.findDetails(ErrorInfoSchema)[0]?.reason;
}

/** What the two trailers of gRPC take. */
function trailerBytes(error: ConnectError): number {
  const details = error.details.map((detail) => ("desc" in detail ? detail.value : {}));
  const json = JSON.stringify(details, (_key, value) => (typeof value === "bigint" ? Number(value) : value));
  return encodeURIComponent(error.rawMessage).length + ((utf8Length(json) + utf8Length(error.rawMessage)) * 4) / 3;
}

test.each(Object.keys(ERROR_CATALOGUE) as ErrorReason[])("%s goes out with its status, reason and domain", (reason) => {
  const error = toConnectError(new GatewayError(reason, "text"));
  const status = Code[error.code]
    ?.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_")
    .toUpperCase()
    .replace("CANCELED", "CANCELLED");
  expect(status).toBe(ERROR_CATALOGUE[reason].status);
  expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason, domain: "toolgate" }]);
});

test("an error carries metadata, text for the model, effect, call id, violations and when to retry", () => {
  const error = toConnectError(
    new GatewayError("ARGUMENTS_INVALID", "2 arguments are wrong", {
      modelMessage: "`city` is missing",
      effect: "unknown",
      retryable: true,
      retryAfterMs: 1500,
      metadata: { tool: "weather" },
      violations: [{ field: "/city", description: "is missing", reason: "MISSING" }],
    }),
    "call-1",
  );
  expect(error.code).toBe(Code.InvalidArgument);
  expect(error.rawMessage).toBe("2 arguments are wrong");
  expect(error.findDetails(ErrorInfoSchema)[0]?.metadata).toEqual({ tool: "weather" });
  expect(error.findDetails(ToolErrorDetailSchema)).toMatchObject([
    { modelMessage: "`city` is missing", retryable: true, effect: Effect.UNKNOWN, callId: "call-1" },
  ]);
  expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([
    { field: "/city", description: "is missing", reason: "MISSING" },
  ]);
  expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 1n, nanos: 500_000_000 } }]);
});

test("what an error does not have is no detail, and its cause is not told", () => {
  const error = toConnectError(GatewayError.from(new Error("password=hunter2")));
  expect(error.code).toBe(Code.Internal);
  expect(error.details).toHaveLength(2);
  expect(JSON.stringify(error.details.map((detail) => ("desc" in detail ? detail.value : {})))).not.toContain(
    "hunter2",
  );
  expect(error.message).toBe("[internal] internal error");
  expect(error.cause).toBeInstanceOf(Error);
});

test("a long text is cut to 1,024 bytes on a code point border [G-D06]", () => {
  const text = `订单失败\nline2 é 😀 %41 ${"😀".repeat(5000)}`;
  const error = toConnectError(new GatewayError("UPSTREAM_UNREACHABLE", text));
  expect(utf8Length(error.rawMessage)).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
  expect(text.startsWith(error.rawMessage.slice(0, -1))).toBe(true);
  expect(error.rawMessage.endsWith("😀…")).toBe(true);
});

test("a lone surrogate in a text does not break the encoding of the status", () => {
  const error = toConnectError(new GatewayError("UPSTREAM_UNREACHABLE", "bad \ud800 text"));
  expect(() => encodeURIComponent(error.rawMessage)).not.toThrow();
});

test("many and long violations and metadata are dropped before the trailers grow over 8 KiB", () => {
  const violations = Array.from({ length: 500 }, (_, i) => ({
    field: `/items/${i}/${"x".repeat(400)}`,
    description: "订".repeat(300),
    reason: "WRONG_TYPE",
  }));
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key${i}`, "v".repeat(1000)]));
  const error = toConnectError(
    new GatewayError("ARGUMENTS_INVALID", "订".repeat(2000), { violations, metadata }),
    "c".repeat(36),
  );
  const kept = error.findDetails(BadRequestSchema)[0]?.fieldViolations.length ?? 0;
  expect(trailerBytes(error)).toBeLessThan(8192);
  expect(error.findDetails(ErrorInfoSchema)[0]?.metadata["violations_omitted"]).toBe(String(500 - kept));
});

test("short violations fit by the dozen", () => {
  const violations = Array.from({ length: 30 }, (_, i) => ({
    field: `/a/${i}`,
    description: "is missing",
    reason: "MISSING",
  }));
  const error = toConnectError(new GatewayError("ARGUMENTS_INVALID", "30 arguments are wrong", { violations }));
  expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations).toHaveLength(30);
  expect(trailerBytes(error)).toBeLessThan(8192);
});

test.each([
  [Code.ResourceExhausted, "REQUEST_TOO_LARGE", Code.ResourceExhausted],
  [Code.InvalidArgument, "REQUEST_INVALID", Code.InvalidArgument],
  [Code.Internal, "REQUEST_INVALID", Code.InvalidArgument],
  [Code.Unimplemented, "REQUEST_INVALID", Code.InvalidArgument],
  [Code.Canceled, "CALL_CANCELLED", Code.Canceled],
  [Code.Aborted, "CALL_CANCELLED", Code.Canceled],
  [Code.DeadlineExceeded, "CALL_DEADLINE_EXCEEDED", Code.DeadlineExceeded],
])("Connect's own error %s before a handler ran becomes %s", (code, reason, status) => {
  const error = new ConnectError('key "nam" is unknown', code);
  describeConnectError(error, facts);
  expect(error.code).toBe(status);
  expect(reasonOf(error)).toBe(reason);
});

test("Connect's text stays, since it names the field at fault, but no longer than any other", () => {
  const error = new ConnectError(`key "${"x".repeat(100_000)}" is unknown`, Code.InvalidArgument);
  describeConnectError(error, facts);
  expect(error.rawMessage).toMatch(/^the request cannot be read: key "xxx/);
  expect(utf8Length(error.rawMessage)).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
});

test("a message over the limit is named with the limit and its key [G-D05]", () => {
  const error = new ConnectError(
    "message size 5242880 is larger than configured readMaxBytes 4194304",
    Code.ResourceExhausted,
  );
  describeConnectError(error, facts);
  expect(error.rawMessage).toContain("5242880");
  expect(error.rawMessage).toContain("4194304");
  expect(error.rawMessage).toContain("`limits.request_bytes`");
});

test("a refused encoding keeps its status and the header that says what is accepted", () => {
  const error = new ConnectError('unknown compression "br"', Code.Unimplemented, { "grpc-accept-encoding": "gzip" });
  describeConnectError(error, facts);
  expect(error.code).toBe(Code.Unimplemented);
  expect(reasonOf(error)).toBe("NOT_SUPPORTED_YET");
  expect(error.metadata.get("grpc-accept-encoding")).toBe("gzip");
});

test("an answer over the limit is not the request's fault", () => {
  const error = new ConnectError("message size 9 is larger than configured writeMaxBytes 8", Code.ResourceExhausted);
  describeConnectError(error, { ...facts, answered: true });
  expect(reasonOf(error)).toBe("RESULT_TOO_LARGE");
  const other = new ConnectError("serialize binary", Code.Internal);
  describeConnectError(other, { ...facts, answered: true });
  expect(reasonOf(other)).toBe("INTERNAL");
});

test("an error that has its details is left alone", () => {
  const error = toConnectError(new GatewayError("TOOL_NOT_FOUND", "no tool"));
  describeConnectError(error, facts);
  expect(reasonOf(error)).toBe("TOOL_NOT_FOUND");
});
