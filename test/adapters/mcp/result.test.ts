import { expect, test } from "vitest";
import { callResult } from "../../../src/adapters/mcp/result.ts";
import { errorResult } from "../../../src/adapters/mcp/result-error.ts";
import type { UpstreamResult } from "../../../src/core/call.ts";
import { type JsonObject, parseJson } from "../../../src/core/json.ts";

const FACTS = { tool: "files/read", readOnly: false };

function read(raw: string | JsonObject, facts = FACTS): UpstreamResult {
  return callResult(typeof raw === "string" ? parseJson(raw) : raw, facts);
}

function text(words: string): JsonObject {
  return { content: [{ type: "text", text: words }], isError: true };
}

test("structured content is the value, with empty content and with none at all [M-D15]", () => {
  expect(read('{"content":[],"structuredContent":{"rows":12}}')).toEqual({
    value: { rows: 12 },
    content: [],
    effect: "committed",
  });
  expect(read('{"structuredContent":{"rows":12}}').value).toEqual({ rows: 12 });
});

test.each(["[1,2]", '"words"', "12", "null", "false", "9007199254740993"])(
  "structured content may be any JSON, with all its digits: %s",
  (json) => {
    expect(read(`{"resultType":"complete","content":[],"structuredContent":${json}}`).value).toEqual(parseJson(json));
  },
);

test("every kind of content is a part of its own, with what the server says of it [M-D18]", () => {
  const bytes = Buffer.from([1, 2, 3, 250]);
  const data = bytes.toString("base64");
  const annotations = { audience: ["user", 7], priority: 0.5, lastModified: "2026-01-01T00:00:00Z", other: true };
  const { content, notices } = read({
    content: [
      { type: "text", text: "words", annotations },
      { type: "image", mimeType: "image/png", data },
      { type: "audio", mimeType: "audio/wav", data },
      {
        type: "resource_link",
        uri: "file:///a.txt",
        name: "a.txt",
        title: "A",
        description: "the file",
        mimeType: "text/plain",
        size: 12,
        annotations: { audience: ["assistant"] },
      },
      { type: "resource", resource: { uri: "file:///a.md", mimeType: "text/markdown", text: "# A" } },
      { type: "resource", resource: { uri: "file:///a.gz", mimeType: "application/gzip", blob: data } },
    ],
  });
  const said = { annotations: { audience: ["user"], priority: 0.5, lastModified: "2026-01-01T00:00:00Z" } };
  expect(notices).toBeUndefined();
  expect(content).toEqual([
    { type: "text", text: "words", ...said },
    { type: "blob", mimeType: "image/png", data: bytes },
    { type: "blob", mimeType: "audio/wav", data: bytes },
    {
      type: "link",
      uri: "file:///a.txt",
      name: "a.txt",
      title: "A",
      description: "the file",
      mimeType: "text/plain",
      sizeBytes: 12,
      annotations: { audience: ["assistant"] },
    },
    { type: "text", text: "# A", resource: { uri: "file:///a.md", mimeType: "text/markdown" } },
    {
      type: "blob",
      mimeType: "application/gzip",
      data: bytes,
      resource: { uri: "file:///a.gz", mimeType: "application/gzip" },
    },
  ]);
});

test.each([
  ["one part without a list", '{"content":{"type":"text","text":"a"}}', "a"],
  ["a text", '{"content":"a"}', "a"],
  ["a list of texts", '{"content":["a"]}', "a"],
])("content that is no list of parts is read all the same: %s", (_, raw, words) => {
  expect(read(raw).content).toEqual([{ type: "text", text: words }]);
});

test.each([
  '{"type":"video","data":"AAAA"}',
  '{"type":"text"}',
  '{"type":"resource"}',
  '{"type":"resource_link","name":"a"}',
  "5",
])("a part that is no content as MCP has it stands as its JSON text, with a notice: %s", (part) => {
  const { content, notices } = read(`{"content":[{"type":"text","text":"ok"},${part}]}`);
  expect(content).toEqual([
    { type: "text", text: "ok" },
    { type: "text", text: part },
  ]);
  expect(notices).toMatchObject([{ reason: "CONTENT_UNREADABLE", message: expect.stringContaining("part 2") }]);
});

test("a result without content is an empty one, and a tool that only reads has no effect", () => {
  expect(read("{}")).toEqual({ content: [], effect: "committed" });
  expect(read("{}", { tool: "a/b", readOnly: true })).toEqual({ content: [], effect: "none" });
});

test.each([
  ["a list", "[]", "no JSON object"],
  ["a task of 2025-11-25", '{"task":{"taskId":"t1","status":"working"}}', "made a task"],
  ["a task of the extension", '{"resultType":"task","taskId":"t1"}', "made a task"],
  ["an unknown type", '{"resultType":"later"}', "does not know"],
])("what is no result is a failure that keeps what came: %s", (_, raw, words) => {
  const { failure, value, effect } = read(raw);
  expect(failure).toMatchObject({ reason: "UPSTREAM_BAD_RESPONSE", message: expect.stringContaining(words) });
  expect([value, effect]).toEqual([parseJson(raw), "unknown"]);
});

test("a tool's own error is a failure with its text, and not the upstream's fault [M-D17]", () => {
  expect(read(text("file not found"))).toEqual({
    content: [],
    failure: {
      reason: "TOOL_FAILED",
      message: "files/read: file not found",
      origin: "tool",
      upstreamCode: undefined,
      retryable: false,
      upstreamFault: false,
    },
    effect: "unknown",
  });
  expect(read('{"content":[],"isError":true}').failure).toMatchObject({
    reason: "TOOL_FAILED",
    message: "files/read: the tool reported an error and did not say which",
  });
});

test.each([
  ["MCP error -32602: Tool nope not found", "UPSTREAM_REJECTED", -32602, "Tool nope not found"],
  ["MCP error -32603: MCP error -32603: connect ECONNREFUSED", "TOOL_FAILED", -32603, "connect ECONNREFUSED"],
  ["McpError: MCP error -32600: duplicate", "UPSTREAM_REJECTED", -32600, "duplicate"],
])("an error of the protocol in words is taken apart: %s", (words, reason, code, message) => {
  const { failure, upstreamCode } = read(text(words));
  expect(failure).toMatchObject({ reason, origin: "protocol", upstreamCode: code, message: `files/read: ${message}` });
  expect(upstreamCode).toBe(code);
});

test.each([
  ['{"status":400,"message":"bad query"}', "bad query"],
  ['{"success":false,"error":"no such table: x","code":"EXECUTION_ERROR"}', "no such table: x"],
  ['{"error":{"code":7,"message":"deep"}}', "deep"],
  ['{"error":"MCP error -32603: twice"}', "twice"],
  ['{"status":400}', '{"status":400}'],
])("an error in JSON gives its words to the message and itself as the value: %s", (json, message) => {
  const result = read(text(json));
  expect(result.failure).toMatchObject({ reason: "TOOL_FAILED", message: `files/read: ${message}` });
  expect([result.value, result.content]).toEqual([parseJson(json), []]);
});

test("an error keeps its other parts, its structured content, and a text too long for a message", () => {
  const long = "x".repeat(3_000);
  const image = { type: "image", mimeType: "image/png", data: "AAAA" };
  const result = read({ content: [{ type: "text", text: long }, image], structuredContent: { n: "x" }, isError: true });
  expect(result.value).toEqual({ n: "x" });
  expect(result.content.map(({ type }) => type)).toEqual(["text", "blob"]);
  expect(result.failure?.message).toContain(long);
});

test.each([
  [-32602, "Unknown tool: nope", "UPSTREAM_REJECTED", "none"],
  [-32601, "Method not found", "UPSTREAM_REJECTED", "none"],
  [-32603, "fetch failed", "UPSTREAM_ERROR", "unknown"],
  [0, "odd", "UPSTREAM_ERROR", "unknown"],
])("an error instead of a result keeps its code: %i %s", (code, message, reason, effect) => {
  expect(errorResult({ code, message }, FACTS)).toEqual({
    content: [],
    failure: {
      reason,
      message: `files/read: ${message}`,
      origin: "protocol",
      upstreamCode: code,
      retryable: false,
      upstreamFault: false,
    },
    upstreamCode: code,
    effect,
  });
});

test("an error instead of a result may be wrapped, empty, of an odd code, and bring data", () => {
  const wrapped = errorResult({ code: -32603, message: "MCP error -32602: Invalid params", data: { at: "a" } }, FACTS);
  expect(wrapped).toMatchObject({
    value: { at: "a" },
    upstreamCode: -32602,
    effect: "unknown",
    failure: { reason: "UPSTREAM_REJECTED", message: "files/read: Invalid params" },
  });
  const odd = errorResult({ code: 1e12, message: "" }, { tool: "a/b", readOnly: true });
  expect(odd.failure).toMatchObject({
    upstreamCode: undefined,
    message: "a/b: the server answered with an error without words",
  });
  expect(odd.effect).toBe("none");
});

test("names of prototypes mean nothing in a result", () => {
  const result = read('{"__proto__":{"isError":true},"constructor":{},"content":[{"type":"constructor"}]}');
  expect(result.failure).toBeUndefined();
  expect(result.notices).toHaveLength(1);
});
