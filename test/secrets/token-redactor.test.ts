import { expect, test } from "vitest";
import { createTokenRedactor } from "../../src/secrets/token-redactor.ts";
import { cpuMs } from "../config/cpu-time.ts";

const redactor = createTokenRedactor();

/** Text of a length that nobody takes for a token of anybody's. */
function filler(length: number, alphabet = "Ab3dEf7hIjK1mNoPqRs9uVwXyZ"): string {
  return Array.from({ length }, (_, i) => alphabet[(i * 7) % alphabet.length]).join("");
}

const JWT = `eyJ${filler(30)}.eyJ${filler(60)}.${filler(43)}`;
const PEM = (kind: string): string =>
  `-----BEGIN ${kind}PRIVATE KEY-----\n${filler(64)}\n${filler(20)}==\n-----END ${kind}PRIVATE KEY-----`;

const TOKENS: readonly (readonly [string, string])[] = [
  ["an AWS access key id", `AKIA${filler(16, "ABCDEFGH2345")}`],
  ["a GitHub token", `ghp_${filler(36)}`],
  ["a fine-grained GitHub token", `github_pat_${filler(22)}_${filler(59)}`],
  ["a GitLab token", `glpat-${filler(20)}`],
  ["a Slack token", `xoxb-${filler(11, "0123456789")}-${filler(24)}`],
  ["a Google API key", `AIza${filler(35)}`],
  ["a Google access token", `ya29.a0${filler(60)}`],
  ["a Stripe key", `sk_live_${filler(24)}`],
  ["an OpenAI key", `sk-${filler(48)}`],
  ["a project's OpenAI key", `sk-proj-${filler(20)}_${filler(20)}-x`],
  ["an Anthropic key", `sk-ant-api03-${filler(40)}`],
  ["an npm token", `npm_${filler(36)}`],
  ["a Hugging Face token", `hf_${filler(34)}`],
  ["a SendGrid key", `SG.${filler(22)}.${filler(43)}`],
  ["a JSON Web Token", JWT],
  ["an RSA key", PEM("RSA ")],
  ["a PKCS#8 key", PEM("")],
  ["a key as JSON text", JSON.stringify(PEM("EC ")).slice(1, -1)],
];

test.for(TOKENS)("%s is masked wherever it stands [K-D04]", ([, token]) => {
  expect(redactor.text(`before ${token} after`)).toBe("before *** after");
  expect(redactor.text(`{"a":"${token}","b":1}`)).toBe('{"a":"***","b":1}');
  expect(redactor.text(`line\\n${token}`)).toBe("line\\n***");
  expect(redactor.text(`q=a%20${token}`)).toBe("q=a%20***");
  expect(redactor.text(token)).toBe("***");
});

test("what a request is authorised with is masked, and the scheme stays", () => {
  expect(redactor.text(`authorization: bearer ${filler(40)}, x`)).toBe("authorization: bearer ***, x");
  expect(redactor.text(`{"Authorization":"Basic dXNlcjpwYXNz"}`)).toBe('{"Authorization":"Basic ***"}');
  expect(redactor.text("Bearer telecommunications and Basic understanding")).toBe(
    "Bearer telecommunications and Basic understanding",
  );
});

test.for([
  "task-0123456789abcdefghijklmnop is no key, nor is disk-aaaaaaaaaaaaaaaaaaaaaaaa",
  "class=sk-loading-spinner-container-wide and sk-short",
  "AKIASHORT eyJub3RoaW5n ghp_short xoxb- AIza SG.a.b npm_install hf_x Bearer of news",
  "eyJhIjoxfQ== is base64 of an object, and no token",
  "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
  "b3f1c2d4-0000-4a00-8000-123456789abc 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
])("ordinary text stays as it is: %s", (text) => {
  expect(redactor.text(text)).toBe(text);
});

test("a key without its end is masked as far as it goes", () => {
  expect(redactor.text(`x -----BEGIN PRIVATE KEY-----\n${filler(500)}`)).toBe("x ***");
});

test("however a text with tokens is cut, its stream gives what the whole text gives", () => {
  const text = TOKENS.map(([name, token]) => `${name}: ${token}; Bearer ${filler(24)} 订单😀`).join("\n");
  const whole = redactor.text(text);
  for (const [, token] of TOKENS) expect(whole).not.toContain(token.slice(0, 20));
  for (let cut = 0; cut <= text.length; cut++) {
    const stream = redactor.stream();
    expect(stream.push(text.slice(0, cut)) + stream.push(text.slice(cut)) + stream.end()).toBe(whole);
  }
  const stream = redactor.stream();
  expect(Array.from(text, (sign) => stream.push(sign)).join("") + stream.end()).toBe(whole);
});

test("a stream keeps back no more than the beginning of a token", () => {
  const stream = redactor.stream();
  expect(stream.push("see ghp_")).toBe("see ");
  expect(stream.push(filler(29))).toBe("");
  expect(stream.push("x")).toBe("***");
  expect(stream.push(`${filler(300)} now`)).toBe(" now");
  expect(stream.push(", 500 ms, eye, log, task\n")).toBe(", 500 ms, eye, log, task\n");
  expect(stream.push(" eyJ")).toBe(" ");
  let kept = 0;
  for (let i = 0; i < 5_000; i++) kept += 1 - stream.push("a").length;
  expect(kept).toBeLessThan(1_100);
  expect(stream.end()).toBe("");
});

test("a search takes time in proportion to the text, whatever stands in it", () => {
  const spent = cpuMs(() => {
    for (const piece of ["eyJ", "-eyJ", " sk-", "-----BEGIN ", "Bearer ", "-----BEGIN PRIVATE KEY-----", "ghp_-"]) {
      const text = piece.repeat(Math.ceil(200_000 / piece.length));
      redactor.text(text);
      const stream = redactor.stream();
      for (let at = 0; at < text.length; at += 50) stream.push(text.slice(at, at + 50));
    }
  });
  // A search that starts over at each place would take minutes.
  expect(spent).toBeLessThan(10_000);
});
