import { expect, test } from "vitest";
import { cutUtf8, splitUtf8, utf8Length } from "../../src/wire/utf8.ts";

test("a text that fits is not cut", () => {
  expect(cutUtf8("订单失败\nline2 é 😀", 64)).toBe("订单失败\nline2 é 😀");
});

test("a text is cut on a code point border within the bytes and ends in an ellipsis", () => {
  const cut = cutUtf8("😀".repeat(100), 21);
  expect(cut).toBe(`${"😀".repeat(4)}…`);
  expect(utf8Length(cut)).toBeLessThanOrEqual(21);
});

test("a lone surrogate becomes the replacement character and pairs stay", () => {
  expect(cutUtf8("a\ud800b😀", 100)).toBe("a\ufffdb😀");
  expect(cutUtf8("\udc00".repeat(100), 9)).toBe("\ufffd\ufffd…");
});

test("pieces hold whole code points and join to the same text", () => {
  const text = `${"a".repeat(70_000)}${"订".repeat(50_000)}${"😀".repeat(40_000)}`;
  const pieces = splitUtf8(text, 65_536);
  expect(pieces.join("")).toBe(text);
  for (const piece of pieces) {
    expect(utf8Length(piece)).toBeLessThanOrEqual(65_536);
    expect(piece.toWellFormed()).toBe(piece);
  }
  expect(pieces.length).toBeLessThan(9);
});

test("a text of exactly the limit stays whole", () => {
  expect(splitUtf8("é".repeat(32), 64)).toEqual(["é".repeat(32)]);
});
