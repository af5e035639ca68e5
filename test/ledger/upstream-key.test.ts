import { expect, test } from "vitest";
import { upstreamKey } from "../../src/ledger/upstream-key.ts";

test("an upstream gets the key as it is where nobody says who calls", () => {
  expect(upstreamKey({ principal: "anonymous", key: "refund-1" })).toBe("refund-1");
});

test("two callers' equal keys are not one to an upstream, one caller's are, and none tells who it is [S2-72]", () => {
  const [ci, shop, again] = ["key:ci", "key:shop", "key:ci"].map((principal) => upstreamKey({ principal, key: "k1" }));
  expect(ci).toMatch(/^k1-[0-9a-f]{16}$/);
  expect(again).toBe(ci);
  expect(shop).not.toBe(ci);
  expect(upstreamKey({ principal: "key:ci", key: "k2" })).not.toBe(ci);
});
