import { expect, test } from "vitest";
import { compilePattern, rememberPatterns } from "../../src/pipeline/schema/linear-pattern.ts";
import { WorkMeter } from "../../src/pipeline/schema/work-meter.ts";
import { cpuMs } from "../config/cpu-time.ts";

const PATTERNS = [
  "^[\\w-.]+$",
  "^\\S+$",
  "\\s",
  "^.$",
  "^[^]$",
  "[]",
  "^[\\s\\S]*$",
  "^\\p{Script=Han}+$",
  "^\\p{L}\\p{Lu}$",
  "^(?<year>\\d{4})-\\d{2}$",
  "^[\\u4e00-\\u9fa5]+$",
  "^\\ud83d\\ude00$",
  "^\\u{1F600}$",
  "[[:alpha:]]",
  "\\A\\z\\Q",
  "^[\\]\\[]$",
  "^\\/x\\-y$",
  "^[+\\-*/]$",
  "\\cA",
  "^\\x41$",
  "[\\b]",
  "^[a-z&&[x]]$",
  "^.{1,2000}$",
  "^.{2}$",
  "^[a-z]{3,}$",
  "^(?:ab){2,3}$",
  "^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$",
  "^1[3-9]\\d{9}$",
  "a{,3}",
  "x*?y",
  "^\\w+([-+.]\\w+)*@\\w+([-.]\\w+)*\\.\\w+([-.]\\w+)*$",
  "(?i:abc)",
  "^[A-Z]{2}\\d{6,}$",
  "^[\\d-]+$",
  "^[--/]$",
  "^ssh-(rsa|dss) |^ecdsa",
  "^(GET|POST)(,(GET|POST))*$",
  "^[ -~]*$",
];

const TEXTS = [
  ..."aAL_-&.:\n\r\b\x01\u2028\u3000\u00a0[]+*",
  "",
  "abc",
  "aBc",
  "12",
  "2020-01",
  "a b",
  "a\u3000b",
  "😀",
  "😀😀",
  "订单",
  "ab-c.d",
  "a@b.co",
  "user.name+x@x-y.com",
  "/x-y",
  "x".repeat(2_000),
  "x".repeat(2_001),
  "😀".repeat(2_000),
  "abab",
  "abababab",
  "a{,3}",
  "xxy",
  "AzQ",
  "zQ",
  "&]",
  "d&&[x]",
  "AB123456",
  "13800138000",
  "GET,POST",
  "ssh-rsa AAAA",
  "Éé",
  "hall",
];

test("patterns match what ECMAScript's own engine matches, in Unicode too", () => {
  for (const source of PATTERNS) {
    const outcome = compilePattern(source);
    if (!outcome.ok) throw new Error(`${source}: ${outcome.problem}`);
    const native = nativePattern(source);
    for (const text of TEXTS) {
      const got = outcome.pattern.test(text, new WorkMeter(1));
      expect(got, `${source} on ${JSON.stringify(text.slice(0, 20))}`).toBe(native.test(text));
    }
  }
});

function nativePattern(source: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    return new RegExp(source);
  }
}

test("what a linear engine cannot run is refused with the reason", () => {
  const problems = ["(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?<n>a)\\k<n>", "^a.{1,5000}$", "["].map(
    (source) => {
      const outcome = compilePattern(source);
      return outcome.ok ? "accepted" : outcome.problem;
    },
  );
  const beyond = "look-around, back-references and counts over 1,000 cannot be run in linear time";
  expect(problems).toEqual([...Array(6).fill(beyond), "its counts make it too large", "not a regular expression"]);
});

test("patterns that would take long to compile are refused before", () => {
  const spent = cpuMs(() => {
    for (const source of ["a".repeat(1_001), "(?:[a-z]{1,100}){1,100}", "(?:a|b|c|d){1,30}".repeat(50)]) {
      expect(compilePattern(source).ok).toBe(false);
    }
  });
  expect(spent).toBeLessThan(500);
});

test("the last patterns are remembered, those that were refused too, and no more than the limit", () => {
  const compile = rememberPatterns(2);
  const first = compile("^a+$");
  const refused = compile("(?=a)");
  expect(compile("^a+$")).toBe(first);
  expect(compile("(?=a)")).toBe(refused);
  compile("^b+$");
  expect(compile("(?=a)")).toBe(refused);
  expect(compile("^a+$")).not.toBe(first);
});

test("a large text is matched to its end where the pattern is simple", () => {
  const outcome = compilePattern("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$");
  if (!outcome.ok) throw new Error(outcome.problem);
  expect(outcome.pattern.test("QUJD".repeat(10_000), new WorkMeter(1))).toBe(true);
  expect(outcome.pattern.test(`${"QUJD".repeat(10_000)}!`, new WorkMeter(1))).toBe(false);
});
