import { createRandom } from "../core/random.ts";

/** Texts that have broken parsers, templates, headers or terminals before. */
export const HOSTILE_TEXTS: readonly string[] = [
  "",
  " ",
  ".",
  "..",
  "../..",
  "..\\..",
  "%2e%2e",
  "%2F",
  "%",
  "%zz",
  "/",
  "//evil.test/x",
  "\\\\evil.test",
  "http://evil.test/",
  "@evil.test",
  ":99999",
  "a/b",
  "a?b=c",
  "a#b",
  "a&b=c",
  "a=b",
  "a+b c",
  "a;b",
  "a\tb",
  "a\r\nX-Evil: 1",
  "a\nb",
  "a\r",
  "\0",
  "a\0b",
  "\u0001",
  "\u007f",
  "\u0085",
  "\u2028",
  "\ufeff",
  "\ufffe",
  "\ud800",
  "a\udfffb",
  "订单",
  "é",
  "e\u0301",
  "👍🏽",
  "{id}",
  "{{id}}",
  "${id}",
  "$id",
  "$$",
  "${",
  "{",
  "}",
  '"',
  "'",
  "\\",
  "<a href='x'>&amp;]]></a>",
  "<!--",
  "]]>",
  "__proto__",
  "constructor",
  "toString",
  "null",
  "true",
  "~",
  "0",
  "-0",
  "007",
  "1e3",
  "1_000",
  "0x1f",
  ".inf",
  "9007199254740993",
  "-9223372036854775808",
  "123456789012345678901234567890",
  "1e400",
  "2024-01-01",
  "5m",
  "*a",
  "&a",
  "!!js/function",
  "<<",
];

/** Random choices that come out the same for the same seed. */
export class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = createRandom(seed);
  }

  /** A whole number from 0 to `below`, without it. */
  number(below: number): number {
    return Math.floor(this.#random() * below);
  }

  /** True once in `times` on average. */
  oneIn(times: number): boolean {
    return this.number(times) === 0;
  }

  /** One of a list that is not empty. */
  pick<T>(list: readonly T[]): T {
    const picked = list[this.number(list.length)];
    if (picked === undefined && list.length === 0) throw new Error("nothing to pick from");
    return picked as T;
  }

  /** Between `least` and `most` things, both included. */
  some<T>(least: number, most: number, make: (index: number) => T): T[] {
    return Array.from({ length: least + this.number(most - least + 1) }, (_, i) => make(i));
  }

  /** Each of a list with one chance in two. */
  subset<T>(list: readonly T[]): T[] {
    return list.filter(() => this.oneIn(2));
  }

  /** Text, hostile or plain. */
  text(): string {
    switch (this.number(6)) {
      case 0:
        return this.plainText();
      case 1:
        return this.pick(HOSTILE_TEXTS) + this.pick(HOSTILE_TEXTS);
      case 2:
        return this.pick(HOSTILE_TEXTS).repeat(1 + this.number(40));
      case 3:
        return this.some(1, 8, () => String.fromCharCode(this.number(this.oneIn(4) ? 0x1_00_00 : 256))).join("");
      default:
        return this.pick(HOSTILE_TEXTS);
    }
  }

  /** Letters and digits, at least one. */
  plainText(): string {
    return this.some(1, 8, () => this.pick([..."abcxyzABC0123456789"])).join("");
  }

  /** A text with a few slips: pieces put in, left out, doubled or exchanged. */
  slips(text: string, pieces: readonly string[]): string {
    let slipped = text;
    for (let left = 1 + this.number(4); left > 0; left--) slipped = this.#slip(slipped, pieces);
    return slipped;
  }

  #slip(text: string, pieces: readonly string[]): string {
    const at = this.number(text.length + 1);
    const end = Math.min(text.length, at + this.number(this.oneIn(4) ? 200 : 6));
    const [before, middle, after] = [text.slice(0, at), text.slice(at, end), text.slice(end)];
    switch (this.number(7)) {
      case 0:
        return before + after;
      case 1:
        return before + middle + middle + after;
      case 2:
        return before + this.pick(pieces) + after;
      case 3:
        return before + this.pick(pieces).repeat(1 + this.number(30)) + middle + after;
      case 4:
        return before + String.fromCharCode(this.number(256)) + middle + after;
      default:
        return before + this.pick(pieces) + middle + after;
    }
  }
}
