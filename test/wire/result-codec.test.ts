import { create, toJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  CallExplanationSchema,
  CallStatsSchema,
  ToolResultSchema,
  TruncationMode,
} from "../../gen/toolgate/v1/call_pb.ts";
import { Effect } from "../../gen/toolgate/v1/errors_pb.ts";
import {
  encodeExplanation,
  encodeOutput,
  encodeResult,
  encodeStats,
  MAX_PIECE_BYTES,
  withinMessage,
} from "../../src/wire/result-codec.ts";
import { utf8Length } from "../../src/wire/utf8.ts";
import { textResult } from "../service/fake-registry.ts";
import { gatewayError } from "./errors.ts";

test("a short delta is one message of its part", () => {
  expect(encodeOutput({ type: "delta", index: 2, text: "hi" })).toEqual([
    { case: "output", value: { index: 2, delta: { case: "text", value: "hi" } } },
  ]);
});

test("a long delta goes in pieces of at most 64 KiB of whole code points [G-D04]", () => {
  const text = "😀".repeat(50_000);
  const pieces = encodeOutput({ type: "delta", index: 0, text }).map((event) => {
    if (event.case !== "output" || event.value.delta?.case !== "text") throw new Error("no text");
    return event.value.delta.value ?? "";
  });
  expect(pieces.join("")).toBe(text);
  expect(pieces.length).toBe(4);
  for (const piece of pieces) expect(utf8Length(piece)).toBeLessThanOrEqual(MAX_PIECE_BYTES);
});

test("progress without a known total has none", () => {
  expect(encodeOutput({ type: "progress", current: 3, total: undefined, message: "m" })).toEqual([
    { case: "progress", value: { current: 3, message: "m" } },
  ]);
  expect(encodeOutput({ type: "progress", current: 3, total: 9, message: "" })).toEqual([
    { case: "progress", value: { current: 3, total: 9, message: "" } },
  ]);
  expect(encodeOutput({ type: "log", level: "warning", message: "w" })).toEqual([
    { case: "log", value: { level: "warning", message: "w" } },
  ]);
});

const TOOL = { name: "order_status", contractDigest: "d1", kind: "http" } as const;

test("a result is carried with its parts, failure and truncation", () => {
  const message = create(
    ToolResultSchema,
    encodeResult(
      {
        content: [
          { type: "text", text: "a" },
          { type: "blob", mimeType: "image/png", data: new Uint8Array([1, 2]) },
          { type: "link", uri: "https://example.test", mimeType: "text/html", name: "page" },
        ],
        structuredJson: "{}",
        failure: { reason: "TOOL_FAILED", message: "no", upstreamCode: 500, retryable: true, upstreamFault: true },
        truncation: { originalLength: 9_000_000_000, mode: "head_tail" },
      },
      TOOL,
    ),
  );
  expect(message).toMatchObject({
    content: [
      { part: { case: "text", value: "a" } },
      { part: { case: "blob", value: { mimeType: "image/png", data: new Uint8Array([1, 2]) } } },
      { part: { case: "link", value: { uri: "https://example.test", mimeType: "text/html", name: "page" } } },
    ],
    structuredJson: "{}",
    failure: { reason: "TOOL_FAILED", message: "no", upstreamCode: 500, retryable: true },
    truncation: { originalLength: 9_000_000_000n, mode: TruncationMode.HEAD_TAIL },
    provenance: { tool: "order_status", contractDigest: "d1", trusted: false, upstream: "http" },
  });
});

test("what a result does not have is absent", () => {
  const message = create(ToolResultSchema, encodeResult(textResult("a"), TOOL));
  expect(message.structuredJson).toBeUndefined();
  expect(message.failure).toBeUndefined();
  expect(message.truncation).toBeUndefined();
});

test("figures of a call are carried", () => {
  const figures = { startTimeMs: 1_700_000_000_000, queuedMs: 2.5, totalMs: 12.5, attempts: 2 };
  const stats = encodeStats({ ...figures, effect: "committed", replayed: true });
  expect(create(CallStatsSchema, stats)).toMatchObject({
    startTime: { seconds: 1_700_000_000n, nanos: 0 },
    queued: { seconds: 0n, nanos: 2_500_000 },
    total: { seconds: 0n, nanos: 12_500_000 },
    attempts: 2,
    effect: Effect.COMMITTED,
    replayed: true,
  });
});

test("an exchange is carried, without a status where there was no answer", () => {
  const exchange = {
    method: "GET",
    url: "http://x/y",
    requestHeaders: [["authorization", "***"]] as const,
    requestBody: "",
    status: undefined,
    responseHeaders: [],
    firstByteMs: undefined,
  };
  const [first, second] = create(
    CallExplanationSchema,
    encodeExplanation([exchange, { ...exchange, status: 200, firstByteMs: 3 }]),
  ).exchanges;
  expect(first).toMatchObject({
    method: "GET",
    url: "http://x/y",
    requestHeaders: [{ name: "authorization", value: "***" }],
  });
  expect(first?.status).toBeUndefined();
  expect(first?.firstByte).toBeUndefined();
  expect(second).toMatchObject({ status: 200, firstByte: { seconds: 0n, nanos: 3_000_000 } });
});

test("a result beyond what every gRPC client takes is refused, with its size and the mend [G-D04]", () => {
  expect(withinMessage(textResult("x".repeat(4_000_000))).content).toHaveLength(1);
  const error = gatewayError(() => withinMessage(textResult("订".repeat(1_400_000))));
  expect(error.reason).toBe("RESULT_TOO_LARGE");
  expect(error.message).toContain("4200000 bytes");
  expect(error.message).toContain("max_length");
});

test("a part is carried with what the tool says of it, and a result with its notices and whose no it is", () => {
  const message = create(
    ToolResultSchema,
    encodeResult(
      {
        ...textResult(""),
        content: [
          { type: "text", text: "# A", resource: { uri: "file:///a.md", mimeType: "text/markdown" } },
          {
            type: "blob",
            mimeType: "image/png",
            data: new Uint8Array([1]),
            annotations: { audience: [], priority: 0 },
          },
          { type: "link", uri: "u", mimeType: "", name: "n", title: "T", description: "D", sizeBytes: 2 ** 40 },
        ],
        failure: {
          reason: "UPSTREAM_REJECTED",
          message: "no",
          origin: "protocol",
          upstreamCode: -32_602,
          retryable: false,
          upstreamFault: false,
        },
        notices: [{ reason: "OUTPUT_SCHEMA_MISMATCH", message: "n" }],
      },
      TOOL,
    ),
  );
  expect(toJson(ToolResultSchema, message)).toEqual({
    content: [
      { text: "# A", resource: { uri: "file:///a.md", mimeType: "text/markdown" } },
      { blob: { mimeType: "image/png", data: "AQ==" }, annotations: { priority: 0 } },
      { link: { uri: "u", name: "n", title: "T", description: "D", sizeBytes: "1099511627776" } },
    ],
    failure: {
      reason: "UPSTREAM_REJECTED",
      message: "no",
      upstreamCode: -32_602,
      origin: "FAILURE_ORIGIN_PROTOCOL",
    },
    notices: [{ reason: "OUTPUT_SCHEMA_MISMATCH", message: "n" }],
    provenance: { tool: "order_status", contractDigest: "d1", upstream: "http" },
  });
});
