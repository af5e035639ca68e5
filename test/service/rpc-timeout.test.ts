import { expect, test } from "vitest";
import { rpcTimeout } from "../../src/service/rpc-timeout.ts";

test.each([
  ["150m", 150],
  ["2S", 2000],
  ["3M", 180_000],
  ["1H", 3_600_000],
  ["500u", 0.5],
  ["1000000n", 1],
  ["99999999H", 359_999_996_400_000],
  ["0S", 0],
  ["", undefined],
  ["5", undefined],
  ["S", undefined],
  ["-1S", undefined],
  ["123456789S", undefined],
])("grpc-timeout %j is %s ms", (value, timeoutMs) => {
  const headers = new Headers({
    "content-type": "application/grpc-web+proto",
    "grpc-timeout": value,
    "connect-timeout-ms": "7",
  });
  expect(rpcTimeout(headers)).toEqual({ header: "grpc-timeout", timeoutMs });
});

test.each([
  ["250", 250],
  ["9999999999", 9_999_999_999],
  ["12345678901", undefined],
  ["1.5", undefined],
])("connect-timeout-ms %j is %s ms", (value, timeoutMs) => {
  const headers = new Headers({
    "content-type": "application/json",
    "connect-timeout-ms": value,
    "grpc-timeout": "1S",
  });
  expect(rpcTimeout(headers)).toEqual({ header: "connect-timeout-ms", timeoutMs });
});

test("without a header there is no deadline", () => {
  expect(rpcTimeout(new Headers({ "content-type": "application/grpc" }))).toBeUndefined();
  expect(rpcTimeout(new Headers())).toBeUndefined();
});
