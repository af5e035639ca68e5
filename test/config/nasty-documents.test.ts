import { expect, test } from "vitest";
import { parseDocument } from "../../src/config/parse-document.ts";
import type { SourceProblem } from "../../src/config/source-document.ts";
import { cpuMs } from "./cpu-time.ts";

const MIB = 1_048_576;

/** Up to 1 MiB of one piece. */
function fill(piece: string): string {
  return piece.repeat(Math.floor(MIB / Buffer.byteLength(piece)));
}

const chain = (length: number): string =>
  `a0: &a0 []\n${Array.from({ length }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}]\n`).join("")}`;

const merges = (length: number): string =>
  `m0: &m0 {k: v}\n${Array.from({ length }, (_, i) => `m${i + 1}: &m${i + 1} {<<: *m${i}, k${i}: 1}\n`).join("")}`;

const NASTY: Readonly<Record<string, string>> = {
  "20,000 opening brackets": "[".repeat(20_000),
  "20,000 opening braces with keys": '{"a":'.repeat(20_000),
  "20,000 nested lists": `a: ${"[".repeat(20_000)}${"]".repeat(20_000)}`,
  "a MiB of opening brackets": fill("["),
  "a MiB of closing brackets": fill("]"),
  "a MiB of list entries in list entries": fill("- "),
  "a MiB of explicit keys": fill("? "),
  "a MiB of colons with spaces": fill(": "),
  "a MiB of colons": fill(":"),
  "a MiB of commas": `[${",".repeat(MIB - 2)}]`,
  "a MiB of double quotes": fill('"'),
  "a MiB of single quotes": fill("'"),
  "an open double quote": `"${"a".repeat(MIB - 1)}`,
  "an open quote of many lines": `'${fill("a\n").slice(2)}`,
  "a MiB of backslashes in double quotes": `"${"\\\\".repeat(MIB / 2 - 2)}a"`,
  "a MiB of quotes in single quotes": `'${"''".repeat(MIB / 2 - 2)}a'`,
  "a MiB of wrong escapes": `"${"\\x".repeat(MIB / 2 - 2)}"`,
  "a MiB of anchors": fill("&a "),
  "a MiB of aliases": fill("*a "),
  "a MiB of tags": fill("! "),
  "a MiB of documents": fill("---\n"),
  "a MiB of document ends": fill("...\n"),
  "a MiB of directives": fill("%a\n"),
  "a MiB of keys": Array.from({ length: 90_000 }, (_, i) => `k${i}: 1\n`).join(""),
  "a MiB of the same key": fill("k: 1\n"),
  "a MiB of empty lines": fill("\n"),
  "a MiB of spaces": fill(" "),
  "a MiB of tabs under a key": `a:\n${"\t".repeat(MIB - 3)}`,
  "a MiB of comments": fill("#\n"),
  "ever deeper indentation": Array.from({ length: 1_400 }, (_, i) => `${" ".repeat(i)}k:\n`).join(""),
  "a block scalar of many lines": `a: |\n${fill(" \n").slice(6)}`,
  "a folded scalar of many lines": `a: >\n${fill(" a\n").slice(6)}`,
  "a plain scalar of many lines": `a: b\n${fill(" a\n").slice(6)}`,
  "unclosed lists line by line": fill("x: [\n"),
  "a chain of 3,000 aliases": chain(3_000),
  "3,000 merges of each other": merges(3_000),
  "an alias to itself": "a: &a [*a, {<<: *a}]\nb: &b {<<: *b}\n",
  "a MiB of carriage returns": fill("\r"),
  "a MiB of NUL": fill("\0"),
  "a MiB of byte order marks": fill("\ufeff"),
  "a MiB of half characters": "\ud800".repeat(1_000),
  "a MiB of emoji": fill("😀"),
  "a key of a MiB": `${"k".repeat(MIB - 5)}: 1`,
  "line separators": "a: b\u2028c: d\u2029e: f\u0085g: h\n",
  "lexer control signs": "a: \u0002\n\u0018b\u001f: c\n",
  "prototype names": "__proto__: &p {constructor: {prototype: 1}}\n<<: *p\ntoString: 1\n",
  "more mistakes inside of open braces than are told": "{a {a: ".repeat(50),
  "a list of everything": '- [?, :, -, ",", {]\n- |+9\n- >-\n- @ ` % & * ! \n',
};

for (const [name, text] of Object.entries(NASTY)) {
  test(`${name}: an outcome, no exception, in bounded time [X-D06]`, () => {
    for (const format of ["yaml", "json"] as const) {
      let readable = false;
      let problems: readonly SourceProblem[] = [];
      const spent = cpuMs(() => {
        const outcome = parseDocument(text, format);
        if (!outcome.ok) problems = outcome.problems;
        readable = outcome.ok;
      });
      expect(spent).toBeLessThan(2_000);
      if (readable) continue;
      expect(problems.length).toBeGreaterThan(0);
      expect(problems.length).toBeLessThanOrEqual(50);
      for (const { line, column, message } of problems) {
        expect(line).toBeGreaterThan(0);
        expect(column).toBeGreaterThan(0);
        expect(message).toMatch(/^[^\p{Cc}\u2028\u2029]{5,400}$/u);
      }
    }
  });
}

test("texts made of YAML's own signs at random never throw", () => {
  const pieces = [
    "a",
    "b:",
    " ",
    "\n",
    "  ",
    "- ",
    "? ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    ",",
    '"',
    "'",
    "|\n",
    ">\n",
    "&x ",
    "*x",
    "!t ",
    "<<: ",
    "---\n",
    "...\n",
    "#c",
    "\t",
    "%Y\n",
    "007",
    "~",
    "\\",
    "\r\n",
    "@",
    "`",
    "😀",
  ];
  let seed = 20_241_001;
  const next = (limit: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % limit;
  };
  for (let round = 0; round < 2_000; round++) {
    const text = Array.from({ length: 1 + next(40) }, () => pieces[next(pieces.length)]).join("");
    for (const format of ["yaml", "json"] as const) {
      const outcome = parseDocument(text, format);
      if (!outcome.ok) expect(outcome.problems.length, JSON.stringify(text)).toBeGreaterThan(0);
    }
  }
});
