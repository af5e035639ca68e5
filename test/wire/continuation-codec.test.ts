import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ContinuationInputSchema } from "../../gen/toolgate/v1/call_pb.ts";
import { decodeContinuation } from "../../src/wire/continuation-codec.ts";
import { gatewayError } from "./errors.ts";

function decode(inputsJson: string, state = "s1") {
  return decodeContinuation(create(ContinuationInputSchema, { state, inputsJson }));
}

test("answers are read by id, with all digits", () => {
  const { state, answers } = decode(
    '{"a":{"action":"accept","content":{"id":9007199254740993}},"b":{"action":"decline"},"__proto__":{"action":"cancel"},"c":{"action":"accept"}}',
  );
  expect(state).toBe("s1");
  expect([...answers]).toEqual([
    ["a", { action: "accept", content: { id: 9_007_199_254_740_993n } }],
    ["b", { action: "decline" }],
    ["__proto__", { action: "cancel" }],
    ["c", { action: "accept", content: {} }],
  ]);
});

test.each([
  ["", "{}", "invocation.continuation.state", "MISSING"],
  ["x".repeat(257), "{}", "invocation.continuation.state", "TOO_LONG"],
  ["s1", "", "invocation.continuation.inputs_json", "NOT_JSON"],
  ["s1", "[]", "invocation.continuation.inputs_json", "WRONG_TYPE"],
  ["s1", '{"a":{},"a":{}}', "invocation.continuation.inputs_json", "DUPLICATE_NAME"],
  ["s1", '{"a":true}', "invocation.continuation.inputs_json/a", "WRONG_VALUE"],
  ["s1", '{"a":{"action":"yes"}}', "invocation.continuation.inputs_json/a", "WRONG_VALUE"],
])(
  "a continuation that cannot be read is refused with its place: state %j, inputs %s",
  (state, inputs, field, reason) => {
    expect(gatewayError(() => decode(inputs, state))).toMatchObject({
      reason: "REQUEST_INVALID",
      violations: [{ field, reason }],
    });
  },
);

test("a continuation has at most 100 answers", () => {
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`q${i}`, { action: "cancel" }]));
  expect(gatewayError(() => decode(JSON.stringify(many))).violations[0]?.reason).toBe("TOO_MANY");
});
