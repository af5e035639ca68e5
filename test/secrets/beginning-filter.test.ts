import { expect, test } from "vitest";
import { BeginningFilter } from "../../src/secrets/beginning-filter.ts";
import { TOKEN_SHAPES } from "../../src/secrets/token-shapes.ts";
import { createRandom } from "../core/random.ts";

const BEGINNINGS = TOKEN_SHAPES.flatMap(({ begins }) => begins);
const filter = new BeginningFilter(BEGINNINGS);

function isThere(text: string): boolean {
  // The case of ASCII alone: some signs beyond it have one of ASCII as their lower case.
  const lower = text.replace(/[A-Z]/g, (sign) => sign.toLowerCase());
  // One of three signs counts only with a sign behind it, without which it is no credential.
  return BEGINNINGS.some((beginning) =>
    (beginning.length > 3 ? lower : lower.slice(0, -1)).includes(beginning.toLowerCase()),
  );
}

test("each beginning is found at every place, in any case, also where a long text is looked at in parts", () => {
  for (const beginning of BEGINNINGS) {
    for (const before of [0, 1, 2, 3, 32_760, 32_763, 32_764, 32_765, 32_766, 32_767, 32_768, 32_769]) {
      const text = `${" ".repeat(before)}${beginning}x`;
      expect(filter.isIn(text)).toBe(true);
      expect(filter.isIn(`${text.toUpperCase()} and more`)).toBe(true);
      const cut = `${text.slice(0, -2)}!`;
      expect(filter.isIn(cut)).toBe(isThere(cut));
    }
  }
});

test("it says of any text what a search for each beginning says", () => {
  const random = createRandom(3);
  const pick = <T>(list: readonly T[], otherwise: T): T => list[Math.floor(random() * list.length)] ?? otherwise;
  let found = 0;
  for (let round = 0; round < 3_000; round++) {
    const pieces = Array.from({ length: 8 }, () => {
      const beginning = pick(BEGINNINGS, "");
      const cut = beginning.slice(Math.floor(random() * 4), Math.floor(random() * (beginning.length + 1)));
      return pick([cut, cut.toUpperCase(), "云\u4573\u016b", "é", " ", "a", "-", "_", "\u212a", "\ud83d\ude00"], "");
    });
    const text = pieces.join("");
    if (isThere(text)) found++;
    if (isThere(text)) expect(filter.isIn(text)).toBe(true);
    // Beyond ASCII, and of three signs at the end, it may see more, and never less.
    else if (/^[ -~]*$/.test(text) && !isThere(`${text} `)) expect(filter.isIn(text)).toBe(false);
  }
  expect(found).toBeGreaterThan(100);
});

test("a beginning that is too short for it is refused", () => {
  expect(() => new BeginningFilter(["ab"])).toThrow(RangeError);
});
