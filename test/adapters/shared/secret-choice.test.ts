import { expect, test } from "vitest";
import { secretRefFor } from "../../../src/adapters/shared/secret-choice.ts";

const AUTH = {
  secretRef: "COMMON",
  byRole: [
    ["admin", "ADMIN"],
    ["sales", "SALES"],
    ["constructor", "ODD"],
  ],
} as const;

test.each([
  [[], "COMMON"],
  [["other"], "COMMON"],
  [["sales"], "SALES"],
  [["sales", "admin"], "ADMIN"],
  [["toString"], "COMMON"],
  [["constructor"], "ODD"],
])("a caller with the roles %j has its calls made with the secret %s", (roles, expected) => {
  expect(secretRefFor(AUTH, roles)).toBe(expected);
});
