import { expect, test } from "vitest";
import { egressKey, parseEgressRule, readEgress } from "../../src/core/egress.ts";

test.for([
  ["api.example.com", { host: "api.example.com", ports: undefined }],
  ["API.Example.com.", { host: "api.example.com" }],
  ["*.example.com:443", { host: "*.example.com", ports: [443, 443] }],
  ["*:8000-8999", { host: "*", ports: [8_000, 8_999] }],
  ["bücher.example", { host: "xn--bcher-kva.example" }],
  ["10.0.0.0/8", { network: { address: "10.0.0.0", bits: 8 } }],
  ["10.1.2.3", { network: { address: "10.1.2.3", bits: 32 } }],
  ["10.0.0.0/8:80", { network: { address: "10.0.0.0", bits: 8 }, ports: [80, 80] }],
  ["fd00::/8", { network: { address: "fd00::", bits: 8 } }],
  ["[FD00:0::]:1", { network: { address: "fd00::", bits: 128 }, ports: [1, 1] }],
  ["[fd00::/8]:8000-8999", { network: { address: "fd00::", bits: 8 }, ports: [8_000, 8_999] }],
] as const)("%s is a place [S2-54, X-D01]", ([text, expected]) => {
  expect(parseEgressRule(text)).toMatchObject(expected);
});

test.for([
  "",
  "a b",
  "http://example.com",
  "example.com/path",
  "user@example.com",
  "*example.com",
  "a.*.com",
  "*.10.0.0.1",
  "10.0.0.0/33",
  "fd00::/129",
  "10.0.0.0/8/8",
  "10.0.0.0/",
  "127.1",
  "0x7f.0.0.1",
  "2130706433",
  "::ffff:10.0.0.1",
  "[example.com]:80",
  "example.com:0",
  "example.com:65536",
  "example.com:9-8",
  "example.com:x",
  "fe80::1%eth0",
])("%j is no place, so that nobody takes it for one [X-D01]", (text) => {
  expect(parseEgressRule(text)).toBeUndefined();
});

test("both lists are read, and each entry that is no place is told by its index", () => {
  const problems: unknown[] = [];
  const rules = readEgress({ allow: ["a.example", "no place"], deny: ["10.0.0.0/8"] }, (...problem) =>
    problems.push(problem),
  );
  expect(rules?.allow?.map(({ text }) => text)).toEqual(["a.example"]);
  expect(rules?.deny.map(({ text }) => text)).toEqual(["10.0.0.0/8"]);
  expect(problems).toEqual([["allow", 1, expect.stringContaining("is no place; write one like `api.example.com`")]]);
  expect(readEgress({ deny: [] }, () => undefined)).toBeUndefined();
  expect(readEgress({ allow: [] }, () => undefined)).toEqual({ allow: [], deny: [] });
  expect(egressKey(undefined)).not.toBe(egressKey({ allow: [], deny: [] }));
});
