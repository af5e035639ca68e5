import { expect, test } from "vitest";
import { codePointCount, headIndex, tailIndex, wellFormed } from "../../src/core/text.ts";

test("code points are counted as the string's own iterator counts them", () => {
  for (const text of ["", "a", "😀", "a😀b", "\ud83d", "\ude00\ud83d", "\ud83d\ud83d\ude00", "订单😀😀"]) {
    expect(codePointCount(text)).toBe([...text].length);
  }
});

test("head and tail are cut between code points", () => {
  for (const text of ["a😀b😀", "😀😀😀", "\ud83d\ud83d\ude00x", "abc"]) {
    const points = [...text];
    for (let count = 0; count <= points.length + 1; count++) {
      expect(text.slice(0, headIndex(text, count))).toBe(points.slice(0, count).join(""));
      expect(text.slice(tailIndex(text, count))).toBe(count === 0 ? "" : points.slice(-count).join(""));
    }
  }
});

test("a lone half of a surrogate pair is replaced, whole pairs stay", () => {
  expect(wellFormed("a\ud83db😀\ude00")).toBe("a\ufffdb😀\ufffd");
});
