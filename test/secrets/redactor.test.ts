import { expect, test } from "vitest";
import type { Redactor } from "../../src/core/secrets.ts";
import { createRedactor } from "../../src/secrets/redactor.ts";
import { SecretMemory } from "../../src/secrets/secret-memory.ts";
import { cpuMs } from "../config/cpu-time.ts";

function redactorOf(...secrets: string[]): Redactor {
  const memory = new SecretMemory();
  for (const secret of secrets) memory.remember(secret);
  return createRedactor(memory);
}

/** A small generator of numbers that repeats itself. Source: mulberry32. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const SECRET = 'sk-live 0"1/2+3=é\\';

test.for([
  ["as it is", SECRET],
  ["upper case", SECRET.toUpperCase()],
  ["lower case", SECRET.toLowerCase()],
  ["percent-encoded", encodeURIComponent(SECRET)],
  ["percent-encoded with lower-case digits", encodeURIComponent(SECRET).replace(/%../g, (c) => c.toLowerCase())],
  ["form-encoded", new URLSearchParams({ k: SECRET }).toString().slice(2)],
  ["as JSON text", JSON.stringify(SECRET).slice(1, -1)],
  ["as JSON text with escaped slashes", JSON.stringify(SECRET).slice(1, -1).replaceAll("/", "\\/")],
  ["as JSON text in ASCII", JSON.stringify(SECRET).slice(1, -1).replace("é", "\\u00e9")],
  ["as JSON text within JSON text", JSON.stringify(JSON.stringify(SECRET)).slice(3, -3)],
  [
    "form-encoded by a browser, spaces as %20",
    new URLSearchParams({ k: SECRET }).toString().slice(2).replaceAll("+", "%20"),
  ],
  ["percent-encoded twice", encodeURIComponent(encodeURIComponent(SECRET))],
  ["percent-encoded in every byte", [...Buffer.from(SECRET)].map((b) => `%${b.toString(16)}`).join("")],
  ["percent-encoded in mixed case", encodeURIComponent(SECRET).replace(/%2./g, (c) => c.toLowerCase())],
  ["as HTML", SECRET.replace('"', "&quot;")],
  ["as CSV", SECRET.replace('"', '""')],
  ["as UTF-8 read as Latin-1", Buffer.from(SECRET).toString("latin1")],
  ["as hexadecimal digits", Buffer.from(SECRET).toString("hex").toUpperCase()],
  ["base64", Buffer.from(SECRET).toString("base64")],
  ["base64 for URLs", Buffer.from(SECRET).toString("base64url")],
] as const)("a secret is masked %s [K-D04]", ([, form]) => {
  expect(redactorOf(SECRET).text(`before ${form} after`)).toBe("before *** after");
});

test.for(["", "u", "us", "use", "user"])(
  "a secret is masked inside the base64 of `%s:secret`, but for a character or two [K-D04]",
  (user) => {
    const secret = "sk-live-0123456789abcdef";
    const encoded = Buffer.from(`${user}:${secret}:end`).toString("base64");
    const redacted = redactorOf(secret).text(`Basic ${encoded}`);
    expect(redacted).toContain("***");
    const left = redacted.split(/\*\*\*|Basic /).map((part) => Buffer.from(part, "base64").toString("latin1"));
    for (let at = 0; at + 4 <= secret.length; at++) {
      for (const part of left) expect(part).not.toContain(secret.slice(at, at + 4));
    }
  },
);

test("text without a secret is left as it is", () => {
  const text = "no secret here: *** $& 订单 😀";
  expect(redactorOf().text(text)).toBe(text);
  expect(redactorOf(SECRET).text(text)).toBe(text);
});

test("secrets with replacement patterns are masked as text [T-D06]", () => {
  expect(redactorOf("k3y$&x$$1").text("got k3y$&x$$1, $& and $$")).toBe("got ***, $& and $$");
});

test("a short secret is masked as a word of its own alone [K-D03]", () => {
  const redactor = redactorOf("cat4");
  expect(redactor.text("cat4 (cat4) x=cat4&y, cat4")).toBe("*** (***) x=***&y, ***");
  expect(redactor.text("concat4 cat42 cat4_ écat4 cat4é")).toBe("concat4 cat42 cat4_ écat4 cat4é");
  expect(redactor.text("密码cat4是")).toBe("密码***是");
});

test("overlapping secrets have one mask, adjacent ones their own", () => {
  expect(redactorOf("abcdef", "defghi").text("xabcdefghix")).toBe("x***x");
  expect(redactorOf("abcabc").text("abcabcabcabc-abc")).toBe("***-abc");
  expect(redactorOf("topsecret").text("topsecrettopsecret")).toBe("******");
  expect(redactorOf("secret-1", "secret-1-long").text("secret-1-long secret-1")).toBe("*** ***");
  expect(redactorOf("inner1", "x-inner1-y").text("x-inner1-y x-inner1-z")).toBe("*** x-***-z");
});

test("a rotated secret stays masked, and a new one is masked from its first use", () => {
  const memory = new SecretMemory();
  const redactor = createRedactor(memory);
  const stream = redactor.stream();
  expect(stream.push("old-secret ")).toBe("old-secret ");
  memory.remember("old-secret");
  memory.remember("new-secret");
  expect(redactor.text("old-secret new-secret")).toBe("*** ***");
  expect(stream.push("old-secret new-s") + stream.push("ecret") + stream.end()).toBe("*** ***");
});

test("a secret that becomes known while its beginning is held back is masked whole", () => {
  const memory = new SecretMemory();
  memory.remember("abc-first");
  const stream = createRedactor(memory).stream();
  expect(stream.push("x abc-")).toBe("x ");
  memory.remember("abc-second");
  expect(stream.push("second y") + stream.end()).toBe("*** y");
});

test("only an end that may begin a secret is held back, and a whole secret is masked at once", () => {
  const stream = redactorOf("topsecret").stream();
  expect(stream.push("hello t")).toBe("hello ");
  expect(stream.push("here to")).toBe("there ");
  expect(stream.push("psecret")).toBe("***");
  expect(stream.push("!")).toBe("!");
  expect(stream.push("topsec")).toBe("");
  expect(stream.end()).toBe("topsec");
  expect(stream.push("reused topsecret") + stream.end()).toBe("reused ***");
});

test("where a text was cut, or ends, the beginning of a secret does not stay [K-D03]", () => {
  const redactor = redactorOf("sk-live-0123456789");
  expect(redactor.text("key sk-live-012345…; retry after 3 s")).toBe("key ***…; retry after 3 s");
  expect(redactor.text("key sk-live-012345")).toBe("key ***");
  expect(redactor.text("key sk-live…, sk-live-012345 and so on, sk-live-")).toBe(
    "key sk-live…, sk-live-012345 and so on, sk-live-",
  );
});

test("what is held back never grows over the longest form, whatever comes", () => {
  const secret = "ab".repeat(20);
  const stream = redactorOf(secret).stream();
  let inside = 0;
  for (let i = 0; i < 2_000; i++) inside += "ab".length - stream.push("ab").length;
  // Everything is one endless match: its mask was shown, and next to nothing waits.
  expect(inside).toBeGreaterThan(3_000);
  expect(stream.end().length).toBeLessThan(secret.length + 4);
});

test("however a text is cut, its stream gives what the whole text gives, and never half a character [K-D04]", () => {
  const next = random(20261130);
  const secrets = ["topsecret-😀-1", "sk-live-0123456789", "ab-ab-ab-ab", "pin4", "0a", "a/b+c=d e"];
  const forms = [
    ...secrets,
    ...secrets.map(encodeURIComponent),
    ...secrets.map((s) => Buffer.from(s).toString("base64")),
  ];
  const filler = ["to", "ps", "sk-live-", "ab-", " ", "订单", "😀", "pin4x", "-", "\n", "0a", "abc", "%2F", "c2st"];
  const redactor = redactorOf(...secrets);
  for (let round = 0; round < 1_000; round++) {
    let text = "";
    for (let i = 0; i < 30; i++) {
      const from = next() < 0.2 ? forms : filler;
      text += from[Math.floor(next() * from.length)] ?? "";
    }
    const whole = redactor.text(text);
    const stream = redactor.stream();
    const characters = Array.from(text);
    let pieces = "";
    while (characters.length > 0) {
      const piece = stream.push(characters.splice(0, 1 + Math.floor(next() * 6)).join(""));
      expect(piece.isWellFormed()).toBe(true);
      pieces += piece;
    }
    expect(pieces + stream.end()).toBe(whole);
    for (const secret of secrets.filter(({ length }) => length >= 6)) expect(whole).not.toContain(secret);
  }
});

test("a search takes time in proportion to the text, whatever stands in it", () => {
  const redactor = redactorOf(`${"a".repeat(2_000)}b`, "sk-live-0123456789");
  const hostile = `${"a".repeat(500_000)}.`;
  const spent = cpuMs(() => {
    expect(redactor.text(hostile)).toBe(hostile);
    const stream = redactor.stream();
    let length = 0;
    for (let at = 0; at < hostile.length; at += 10) length += stream.push(hostile.slice(at, at + 10)).length;
    expect(length + stream.end().length).toBe(hostile.length);
  });
  // A search that starts over at each place would take minutes.
  expect(spent).toBeLessThan(10_000);
});
