import { expect, test } from "vitest";
import { codePointCount, headIndex, tailIndex } from "../../src/core/text.ts";
import { shorten } from "../../src/shaping/shorten.ts";
import { cpuMs } from "../config/cpu-time.ts";

const MODES = ["head", "tail", "head_tail"] as const;

test("a text within the limit is left alone, counted in code points [S2-113]", () => {
  expect(shorten("😀".repeat(5), 5, "head")).toBeUndefined();
  expect(shorten("", 1, "head")).toBeUndefined();
  expect(shorten("😀".repeat(6), 5, "head")).toBeDefined();
});

test("the mark says what was kept of how many characters [S2-115]", () => {
  const text = `${"a".repeat(500)}${"b".repeat(500)}`;
  expect(shorten(text, 100, "head")).toEqual({
    text: `${"a".repeat(64)}\n[cut: first 64 of 1000 characters]`,
    originalLength: 1_000,
  });
  expect(shorten(text, 100, "tail")?.text).toMatch(/^\[cut: last \d+ of 1000 characters\]\nb+$/);
  expect(shorten(text, 120, "head_tail")?.text).toMatch(/^a+\n\[cut: first \d+ and last \d+ of 1000 characters\]\nb+$/);
});

test("whatever the limit, text and mode: within the limit, well-formed, and saying the truth about what was kept [A-D04]", () => {
  const texts = ["a".repeat(9) + "😀😀", "😀".repeat(400), "x".repeat(5_000), "订单".repeat(100)];
  for (const text of texts) {
    const length = codePointCount(text);
    for (const mode of MODES) {
      for (let limit = 0; limit < Math.min(length, 120); limit++) {
        const cut = shorten(text, limit, mode);
        if (cut === undefined) throw new Error("not cut");
        expect(codePointCount(cut.text)).toBeLessThanOrEqual(limit);
        expect(cut.text.isWellFormed()).toBe(true);
        expect(cut.originalLength).toBe(length);
        const [, first = "0"] = /first (\d+)/.exec(cut.text) ?? [];
        const [, last = "0"] = /last (\d+)/.exec(cut.text) ?? [];
        expect(cut.text.startsWith(text.slice(0, headIndex(text, Number(first))))).toBe(true);
        expect(cut.text.endsWith(text.slice(tailIndex(text, Number(last))))).toBe(true);
        expect(shorten(cut.text, limit, mode)).toBeUndefined();
      }
    }
  }
});

test("where there is no room for the mark, an ellipsis stands for it [A-D04]", () => {
  expect(shorten(`${"a".repeat(9)}😀😀`, 10, "head")?.text).toBe(`${"a".repeat(9)}…`);
  expect(shorten("abcdef", 4, "tail")?.text).toBe("…def");
  expect(shorten("abcdef", 4, "head_tail")?.text).toBe("ab…f");
  expect(shorten("abcdef", 1, "head")?.text).toBe("…");
  expect(shorten("abcdef", 0, "head")?.text).toBe("");
});

test("a large text is cut in no time", () => {
  const text = "订😀".repeat(1_000_000);
  const spent = cpuMs(() => {
    for (const mode of MODES) shorten(text, 700_000, mode);
  });
  expect(spent).toBeLessThan(3_000);
});
