import { expect, test } from "vitest";
import { parseExact, stringifyExact } from "../../clients/typescript/src/index.ts";

test("integers beyond 2^53 keep their digits both ways", () => {
  const text =
    '{"id":9223372036854775807,"neg":-9007199254740993,"small":12,"float":1.5e300,"s":"9223372036854775807"}';
  const value = parseExact(text);
  expect(value).toEqual({
    id: 9_223_372_036_854_775_807n,
    neg: -9_007_199_254_740_993n,
    small: 12,
    float: 1.5e300,
    s: "9223372036854775807",
  });
  expect(stringifyExact({ id: 9_223_372_036_854_775_807n, list: [1n, "x"] })).toBe(
    '{"id":9223372036854775807,"list":[1,"x"]}',
  );
  expect(stringifyExact(undefined)).toBe("null");
});

test("malformed text is a SyntaxError", () => {
  expect(() => parseExact("{")).toThrow(SyntaxError);
});
