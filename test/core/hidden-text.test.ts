import { expect, test } from "vitest";
import { HiddenText, showHidden } from "../../src/core/hidden-text.ts";

const tags = (text: string): string =>
  [...text].map((c) => String.fromCodePoint(0xe0000 + (c.codePointAt(0) ?? 0))).join("");

test.for([
  ["tag characters", `ok${tags("hi")}`, "ok<U+E0068><U+E0069>"],
  ["a right-to-left override", "user\u202egnp.exe\u202c", "user<U+202E>gnp.exe<U+202C>"],
  ["isolates", "a\u2066b\u2069", "a<U+2066>b<U+2069>"],
  ["a space without width in a word", "pass\u200bword", "pass<U+200B>word"],
  ["joiners between ASCII letters", "a\u200db\u200cc", "a<U+200D>b<U+200C>c"],
  ["a byte order mark in the text", "a\ufeffb", "a<U+FEFF>b"],
  ["bits of characters without width", "订\u200b\u200c\u200b单", "订\u200b<U+200C><U+200B>单"],
  ["selectors that carry bytes", `😀${String.fromCodePoint(0xe0148, 0xe0155)}`, "😀<U+E0148><U+E0155>"],
  ["selectors in a row", "a\ufe0f\ufe00\ufe01", "a\ufe0f<U+FE00><U+FE01>"],
  ["tags behind a flag that is none", `🏴${tags("ignoreall")}`, `🏴${tags("ignore")}<U+E0061><U+E006C><U+E006C>`],
] as const)("%s are shown [X-D08]", ([, text, shown]) => {
  expect(showHidden(text)).toBe(shown);
});

test.for([
  "订单已发货 プレゼント 서울 สวัสดี",
  "👨‍👩‍👧‍👦 ❤️ 1️⃣ 🏳️‍🌈 👍🏽 ©️",
  "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} wins",
  "می‌خواهم क्‍ष ភាសា​ខ្មែរ",
  "葛\u{e0100}城",
  "שלום \u200fعربي",
  "plain ASCII, tabs\tand\nlines",
])("ordinary text stays as it is: %s [X-D08]", (text) => {
  expect(showHidden(text)).toBe(text);
});

test("a text in pieces is shown as the whole of it is", () => {
  const text = `a\u200b订\u200bx ${tags("no")} \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}👨‍👩‍👧 e\u202e`;
  const hidden = new HiddenText();
  expect(Array.from(text, (sign) => hidden.next(sign)).join("")).toBe(showHidden(text));
  expect([...hidden.shown]).toEqual(["U+200B", "U+E006E", "U+E006F", "U+202E"]);
});
