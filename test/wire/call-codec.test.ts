import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { InvocationSchema } from "../../gen/toolgate/v1/call_pb.ts";
import type { GatewayError } from "../../src/core/errors.ts";
import { decodeInvocation, heartbeatMs } from "../../src/wire/call-codec.ts";
import { gatewayError } from "./errors.ts";

type Init = MessageInitShape<typeof InvocationSchema>;

function decode(init: Init) {
  return decodeInvocation(create(InvocationSchema, { name: "echo", ...init }));
}

function refusal(init: Init): GatewayError {
  return gatewayError(() => decode(init));
}

function withJson(value: string): Init {
  return { arguments: { case: "argumentsJson", value } };
}

test("arguments as text keep the digits of 64-bit integers", () => {
  expect(decode(withJson('{"id": 871234567890123457}')).arguments).toEqual({ id: 871234567890123457n });
});

test.each(["", " \n"])("empty text %j and no arguments at all mean an empty object", (text) => {
  expect(decode(withJson(text)).arguments).toEqual({});
  expect(decode({}).arguments).toEqual({});
});

test("arguments as a Struct are taken as they are", () => {
  const value = { a: 1, b: [true, null, { c: "x" }] };
  expect(decode({ arguments: { case: "argumentsStruct", value } }).arguments).toEqual(value);
});

test("arguments that are not a JSON object are refused with what was got", () => {
  expect(refusal(withJson("[1]")).reason).toBe("ARGUMENTS_MALFORMED");
  expect(refusal(withJson("[1]")).message).toBe(
    'arguments_json must be a JSON object such as {"city": "Berlin"}, got array',
  );
  expect(refusal(withJson('"text"')).message).toContain("got string");
});

test("arguments that are not JSON are refused with the place and never with another library's text", () => {
  const error = refusal(withJson('{"city": Berlin}'));
  expect(error.reason).toBe("ARGUMENTS_MALFORMED");
  expect(error.message).toBe('arguments_json is not valid JSON at character 10: expected a JSON value, got "Berlin}"');
  expect(error.cause).toBeInstanceOf(SyntaxError);
});

test("arguments nested 100,000 levels deep are refused at once [X-D06]", () => {
  const deep = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  expect(refusal(withJson(deep)).message).toBe("arguments_json is nested deeper than 128 levels");
});

test("a number that nothing can hold is refused with its place, as text and in a Struct", () => {
  const inText = refusal(withJson('{"a": [{"b": 1e400}]}'));
  expect(inText.reason).toBe("ARGUMENTS_MALFORMED");
  expect(inText.violations).toEqual([
    {
      field: "/a/0/b",
      reason: "OUT_OF_RANGE",
      description: "holds the number 1e400 at /a/0/b, which is out of range: at most 1.79e308",
    },
  ]);
  const value = { a: [{ b: Number.NaN }] };
  const inStruct = refusal({ arguments: { case: "argumentsStruct", value } });
  expect(inStruct.message).toBe(
    "arguments_struct holds NaN at /a/0/b, which JSON has no word for; send a finite number or a string",
  );
  expect(inStruct.violations[0]).toMatchObject({ field: "/a/0/b", reason: "OUT_OF_RANGE" });
});

test("a name that stands twice is refused with its place, and neither value is used", () => {
  const error = refusal(withJson('{"order": {"id": 1, "id": 2}}'));
  expect(error.reason).toBe("ARGUMENTS_MALFORMED");
  expect(error.message).toBe(
    'arguments_json has the name "id" twice in one object, again at character 21: keep one of them',
  );
  expect(error.violations[0]).toMatchObject({ field: "/order/id", reason: "DUPLICATE_NAME" });
});

test("a name such as __proto__ in the arguments is an ordinary name", () => {
  const { arguments: parsed } = decode(withJson('{"__proto__": {"admin": true}, "constructor": 1}'));
  expect(Object.keys(parsed)).toEqual(["__proto__", "constructor"]);
  expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
});

test("a request id is 1 to 64 visible ASCII characters", () => {
  expect(decode({ requestId: "a".repeat(64) }).requestId).toHaveLength(64);
  expect(decode({}).requestId).toBeUndefined();
  for (const requestId of ["a".repeat(65), "a b", "\u00e9", "a\n"]) {
    expect(refusal({ requestId })).toMatchObject({
      reason: "REQUEST_INVALID",
      metadata: { field: "invocation.request_id" },
    });
  }
});

test("a caller says whether it can answer, and how it answers", () => {
  expect(decode({})).toMatchObject({ acceptsInput: false, continuation: undefined });
  expect(decode({ acceptsInput: true }).acceptsInput).toBe(true);
  const continuation = { state: "s", inputsJson: '{"q":{"action":"decline"}}' };
  expect(decode({ continuation }).continuation).toEqual({
    state: "s",
    answers: new Map([["q", { action: "decline" }]]),
  });
  expect(refusal({ continuation: { state: "s" } })).toMatchObject({ reason: "REQUEST_INVALID" });
});

test.each([
  ["invocation.name", { name: "" }, "MISSING"],
  ["invocation.name", { name: "x".repeat(130) }, "TOO_LONG"],
  ["invocation.max_length", { maxLength: 0 }, "OUT_OF_RANGE"],
  ["invocation.model_window", { modelWindow: 0 }, "OUT_OF_RANGE"],
  ["invocation.question", { question: "x".repeat(4_001) }, "TOO_LONG"],
  ["invocation.timeout", { timeout: { seconds: 0n, nanos: 0 } }, "OUT_OF_RANGE"],
  ["invocation.timeout", { timeout: { seconds: -1n, nanos: 0 } }, "OUT_OF_RANGE"],
  ["invocation.context.session_id", { context: { sessionId: "x".repeat(257) } }, "TOO_LONG"],
  ["invocation.context.attributes", { context: { attributes: { a: "x".repeat(257) } } }, "TOO_LONG"],
  ["invocation.contract_digest", { contractDigest: "x".repeat(257) }, "TOO_LONG"],
] as const)("%s is refused for a value it does not take", (field, init, reason) => {
  const error = refusal(init);
  expect(error.reason).toBe("REQUEST_INVALID");
  expect(error.violations[0]).toMatchObject({ field, reason });
});

test("too many attributes are refused", () => {
  const attributes = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`a${i}`, "x"]));
  expect(refusal({ context: { attributes } }).violations[0]?.reason).toBe("TOO_MANY");
});

test("a request without an invocation is refused", () => {
  expect(gatewayError(() => decodeInvocation(undefined)).violations[0]?.field).toBe("invocation");
});

test("everything else of an invocation is carried over, and what is empty is absent", () => {
  const full = decode({
    validateOnly: true,
    explain: true,
    maxLength: 5,
    modelWindow: 8_000,
    question: "why?",
    timeout: { seconds: 2n, nanos: 500_000_000 },
    contractDigest: "d",
    context: { sessionId: "s", turnId: "t", toolCallId: "c", taskId: "k", attributes: { a: "b" } },
  });
  expect(full).toMatchObject({
    name: "echo",
    validateOnly: true,
    explain: true,
    maxLength: 5,
    modelWindow: 8_000,
    question: "why?",
    timeoutMs: 2500,
    contractDigest: "d",
    sessionId: "s",
    turnId: "t",
    toolCallId: "c",
    taskId: "k",
    attributes: { a: "b" },
  });
  expect(decode({})).toMatchObject({
    maxLength: undefined,
    modelWindow: undefined,
    question: undefined,
    timeoutMs: undefined,
    sessionId: undefined,
    contractDigest: undefined,
  });
});

test("a heartbeat is 15 s where nothing is said, never for 0, and at least 100 ms", () => {
  const heartbeat = (seconds: bigint, nanos: number) => heartbeatMs(create(DurationSchema, { seconds, nanos }));
  expect(heartbeatMs(undefined)).toBe(15_000);
  expect(heartbeat(0n, 0)).toBeUndefined();
  expect(heartbeat(0n, 100_000_000)).toBe(100);
  expect(gatewayError(() => heartbeat(0n, 99_000_000)).message).toBe(
    "`heartbeat` must be 0 (never) or at least 0.1 s, got 0.099 s",
  );
  expect(gatewayError(() => heartbeat(-1n, 0)).reason).toBe("REQUEST_INVALID");
});
