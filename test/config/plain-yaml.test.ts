import { expect, test } from "vitest";
import { parseDocument } from "../../src/config/parse-document.ts";
import { readPlainYaml } from "../../src/config/plain-yaml.ts";
import { SharedParts } from "../../src/config/shared-parts.ts";
import { indexLines } from "../../src/config/source-document.ts";
import { inOneGo } from "../../src/config/steps.ts";
import { readYaml } from "../../src/config/yaml-document.ts";

const DECLARATION = `# Looks an order up.
name: order_status
description: 根据订单号查询订单当前状态，支持传入 "订单号" 和 {时间范围}
title: 'It''s "quoted"'   # a comment
type: http
endpoint: https://api.example.com/orders/{order_id}?a=b#c
version: 1.10
enabled: true
nothing: ~
params:
  - name: order_id
    required: true
    examples: [SO1, "a, b", -5, {x: [1.5, null]}, ' # ']

  # between two entries
  - { name: limit, type: integer, pattern: "^[a-z]\\\\d+$" }
labels:
- a
-   b: 1
    c: 2
text: |
  first
    second # no comment

  third

end: |-
  last
`;

/** Texts whose outcome is a close call: the whole reader's word counts. */
const CLOSE_CALLS = [
  "a: b\n  c\n",
  "a: b\n  # c\nd: e\n",
  "a:\n  b: c\n  # d\n",
  "a:\n  b: c\n    # d\n",
  "a: 'b' c\n",
  "a: 'b\n  c'\n",
  "a: b: c\n",
  "a: b:\n",
  "a: {b}\n",
  "a: {b: c, b: d}\n",
  "a: {b: c,}\n",
  "a: [b, , c]\n",
  "a: [b] c\n",
  "a: [b: c]\n",
  "a: [b #c]\n",
  "a: {b:c}\n",
  "a: {b: c:d, e: f}\n",
  "a: #b\n",
  "a: b #\n",
  "a: b#c\n",
  "a:\n",
  "a:\nb: c\n",
  "a: 007\n",
  "a: 0x1f\nb: 1e3\nc: .5\nd: 1_000\ne: +1\nf: -0\ng: 1.\n",
  "a: .inf\nb: .nan\nc: True\nd: NULL\n",
  "a: 12345678901234567890\n",
  "a: 2024-01-01\nb: 1.2.3\nc: 5m\n",
  "a: -\nb: - c\n",
  "- a\n- b\n",
  "a: - b\n",
  "a:\n- b\nc:\n-d\n",
  "a:\n  - b\n c: d\n",
  "a:\n  - b\n    c\n",
  "a:\n  - b: c\n   d: e\n",
  "a:\n  -\n    b: c\n",
  "a:\n  - - b\n",
  "a: |\nb: c\n",
  "a: |\n\n  b\n",
  "a: |\n    b\n  c\n",
  "a: |\n  b\n # c\n",
  "a: |\n  b\n \nc: d\n",
  "a: |\n  b",
  "a: |+\n  b\n\n",
  "a: |2\n   b\n",
  "a: | # c\n  b\n",
  "a: >\n  b\n  c\n",
  "a: &b c\nd: *b\n",
  "a: !!str 1\n",
  "<<: {a: b}\n",
  "__proto__: {a: b}\nconstructor: c\n",
  "? a\n: b\n",
  '"a": b\n',
  "1: a\ntrue: b\nnull: c\n",
  "a : b\n",
  " a: b\n",
  "a: b\n---\nc: d\n",
  "---\na: b\n",
  "a: b\n...\n",
  "%YAML 1.2\n",
  "a:\tb\n",
  "a: b\r\nc: d\r\n",
  'a: "\\u0041\\x41\\/"\n',
  'a: "b\\n\\"c\\\\"\n',
  'a: "b\n',
  "a: @b\n",
  "a: `b`\n",
  "a: %b\n",
  "a: ,b\n",
  "",
  "# a\n",
  "a",
  `a: ${"[".repeat(40)}${"]".repeat(40)}\n`,
];

function expectAgreement(text: string): boolean {
  const plain = readPlainYaml(text);
  if (plain === undefined) return false;
  expect(inOneGo(readYaml(text, indexLines(text))), JSON.stringify(text)).toStrictEqual({ root: plain, findings: [] });
  return true;
}

test("a declaration as people write it is read without the whole reader, to the same outcome", () => {
  expect(expectAgreement(DECLARATION)).toBe(true);
});

test("what could be read in another way is left to the whole reader, or read to the same outcome", () => {
  expect(CLOSE_CALLS.filter(expectAgreement)).toEqual([
    "a: {b: c:d, e: f}\n",
    "a: b #\n",
    "a: b#c\n",
    "a: |\n  b",
    "__proto__: {a: b}\nconstructor: c\n",
    'a: "b\\n\\"c\\\\"\n',
  ]);
});

test("a text of any length is read, and one of more than 20,000 values is left to the whole reader", () => {
  const entries = (count: number): string => Array.from({ length: count }, (_, i) => `k${i}: v\n`).join("");
  expect(readPlainYaml(`a: ${"b".repeat(500_000)}\n`)).toBeDefined();
  expect(readPlainYaml(entries(20_000))?.members?.size).toBe(20_000);
  expect(readPlainYaml(entries(20_001))).toBeUndefined();
  expect(readPlainYaml(`a: [${"1,".repeat(20_000)}1]\n`)).toBeUndefined();
});

test("declarations with slips at random places are read to the same outcome", () => {
  const pieces = ["\n", " ", "  ", "#", " #", ":", ": ", "- ", "|", ">", "{", "}", "[", "]", ",", "'", '"', "\\", "0"];
  let seed = 7;
  const random = (limit: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 4_294_967_296) * limit);
  };
  let taken = 0;
  for (let n = 0; n < 1_000; n++) {
    const at = random(DECLARATION.length);
    const lines = DECLARATION.slice(0, at) + (pieces[random(pieces.length)] ?? "") + DECLARATION.slice(at + random(3));
    // Half of them whole lines of it, so that each line comes to be the first and the last.
    const cut = lines.split("\n").slice(random(20), 20 + random(10));
    if (expectAgreement(n % 2 === 0 ? lines : `${cut.join("\n")}\n`)) taken++;
  }
  expect(taken).toBeGreaterThan(50);
});

/** What there is to know of a document, with the places of all that is in it. */
function facts(text: string, parts?: SharedParts): unknown {
  const outcome = parseDocument(text, "yaml", parts === undefined ? {} : { parts });
  if (!outcome.ok) return outcome.problems;
  const { document } = outcome;
  const pointers = pointersIn(document.value, "");
  const told = pointers.map((at) => [at, document.position(at), document.scalarSource(at), document.comment(at)]);
  return { value: document.value, told };
}

function pointersIn(value: unknown, pointer: string): string[] {
  const inside = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return [pointer, `${pointer}/absent`, ...inside.flatMap(([key, member]) => pointersIn(member, `${pointer}/${key}`))];
}

test("a document whose parts were read before, in other places of other documents, is read to the same outcome", () => {
  const parts = new SharedParts();
  const moved = (text: string): string => `# This one stands lower.\n\nbefore: {b: 1}\n${text}`;
  const last = DECLARATION.split("\n").slice(5).join("\n");
  for (const text of [DECLARATION, last, ...CLOSE_CALLS]) {
    for (const each of [text, moved(text), text, moved(moved(text)), `${text}after: [a]\n`, moved(text)]) {
      expect(facts(each, parts), JSON.stringify(each)).toStrictEqual(facts(each));
    }
  }
});

test("lists and mappings in the same words are one value in all documents, which nobody can change", () => {
  const parts = new SharedParts();
  const read = (name: string): unknown => {
    return readPlainYaml(`name: ${name}\nlist:\n  - a: [1, {b: c}]\nown: {name: ${name}}\n`, parts)?.value;
  };
  const [first, second, third] = ["a", "b", "c"].map(read) as [unknown, unknown, unknown];
  expect(second).toStrictEqual({ name: "b", list: [{ a: [1, { b: "c" }] }], own: { name: "b" } });
  expect((third as { list: unknown }).list).toBe((first as { list: unknown }).list);
  expect(Object.isFrozen((third as { list: [{ a: unknown }] }).list[0].a)).toBe(true);
  expect(Object.isFrozen((third as { own: unknown }).own)).toBe(false);
});

test("no more parts are kept than 500, or than 20,000 values of them, and those that are met again stay", () => {
  const parts = new SharedParts();
  const read = (n: number, size: number): unknown => {
    const items = Array.from({ length: size }, (_, i) => `  - ${i}\n`).join("");
    return readPlainYaml(`list:\n  - n${n}\n${items}`, parts)?.value;
  };
  const isKept = (n: number, size: number): boolean => Object.isFrozen((read(n, size) as { list: unknown }).list);
  for (let n = 0; n <= 500; n++) {
    read(n, 1);
    if (n % 100 === 0) read(0, 1);
  }
  expect([isKept(0, 1), isKept(1, 1), isKept(400, 1)]).toEqual([true, false, true]);
  for (let n = 0; n < 25; n++) read(n, 1_000);
  expect([isKept(400, 1), isKept(24, 1_000)]).toEqual([false, true]);
});
