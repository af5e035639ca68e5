import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CheckStatus } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { RegisterRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import {
  decodeEtag,
  decodeRegister,
  encodeCheck,
  encodeProblems,
  encodeToolExplanation,
} from "../../src/wire/registry-codec.ts";
import { toolDefinition } from "../service/fake-registry.ts";
import { gatewayError } from "./errors.ts";

function decode(init: MessageInitShape<typeof RegisterRequestSchema>) {
  return decodeRegister(create(RegisterRequestSchema, init));
}

const yaml = { case: "declarationYaml", value: "name: x" } as const;

test("a registration is carried over, and what is empty is absent", () => {
  expect(decode({ declaration: yaml })).toEqual({
    text: "name: x",
    format: "yaml",
    validateOnly: false,
    etag: undefined,
    mustNotExist: false,
    leaseMs: undefined,
  });
  expect(
    decode({
      declaration: { case: "declarationJson", value: "{}" },
      validateOnly: true,
      etag: "e",
      mustNotExist: true,
      lease: { seconds: 30n, nanos: 0 },
    }),
  ).toEqual({ text: "{}", format: "json", validateOnly: true, etag: "e", mustNotExist: true, leaseMs: 30_000 });
});

test.each([
  ["declaration", {}, "MISSING"],
  ["declaration_yaml", { declaration: { ...yaml, value: "x".repeat(1_048_577) } }, "TOO_LONG"],
  ["declaration_json", { declaration: { case: "declarationJson", value: "订".repeat(400_000) } }, "TOO_LONG"],
  ["lease", { declaration: yaml, lease: { seconds: 0n, nanos: 999_999_999 } }, "OUT_OF_RANGE"],
  ["lease", { declaration: yaml, lease: { seconds: 2_592_001n, nanos: 0 } }, "OUT_OF_RANGE"],
  ["etag", { declaration: yaml, etag: "x".repeat(257) }, "TOO_LONG"],
] as const)("%s is refused for a value it does not take", (field, init, reason) => {
  const error = gatewayError(() => decode(init));
  expect(error.reason).toBe("REQUEST_INVALID");
  expect(error.violations[0]).toMatchObject({ field, reason });
});

test("an empty etag is none", () => {
  expect(decodeEtag("")).toBeUndefined();
});

test("problems are at most 1,000 and none is longer than 1,024 bytes", () => {
  const problem = {
    source: "file:a.yaml",
    line: 3,
    column: 5,
    message: "m".repeat(5000),
    lastGoodServing: true,
    note: false,
  };
  const encoded = encodeProblems(Array.from({ length: 1500 }, () => problem));
  expect(encoded).toHaveLength(1000);
  expect(encoded[0]).toMatchObject({ source: "file:a.yaml", line: 3, column: 5, lastGoodServing: true, note: false });
  expect(Buffer.byteLength(encoded[0]?.message ?? "")).toBe(1024);
});

test("an explanation and a finding are carried over", () => {
  const values = [{ key: "timeout.read", value: "10s", origin: "default" }];
  expect(encodeToolExplanation({ definition: toolDefinition({ name: "x" }), values, steps: ["audit"] })).toEqual({
    name: "x",
    etag: "etag-x",
    values,
    steps: ["audit"],
  });
  expect(encodeCheck({ subject: "s", status: "failed", message: "m", mend: "do" })).toEqual({
    subject: "s",
    status: CheckStatus.FAILED,
    message: "m",
    mend: "do",
  });
});
