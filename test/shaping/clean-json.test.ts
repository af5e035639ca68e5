import { expect, test } from "vitest";
import { parseJson } from "../../src/core/json.ts";
import type { Redactor } from "../../src/core/secrets.ts";
import { cleanJson } from "../../src/shaping/clean-json.ts";
import { TextCleaner } from "../../src/shaping/text-cleaner.ts";
import { redactor, SECRET } from "./fixtures.ts";

const PIN = "12345678";

const pinRedactor: Redactor = { ...redactor, text: (value) => redactor.text(value).replaceAll(PIN, "***") };

test("a clean value is written as it stands", () => {
  const text = '{"id":871234567890123457,"f":0.1,"list":[null,true,"订单"]}';
  expect(cleanJson(parseJson(text), new TextCleaner(redactor)).text).toBe(text);
});

test("secrets in names, texts and numbers are masked, and what comes out is JSON", () => {
  const value = parseJson(`{"${SECRET}":["${SECRET}",1],"pin":${PIN},"long":9912345678991234567899,"n":1}`);
  const { text } = cleanJson(value, new TextCleaner(pinRedactor));
  expect(JSON.parse(text)).toEqual({ "***": ["***", 1], pin: "***", long: "99***99***99", n: 1 });
});

test("half a surrogate pair is replaced, in names too", () => {
  expect(cleanJson({ "a\ud83d": "\ude00😀", "\\ud83d": 1 }, new TextCleaner(redactor)).text).toBe(
    '{"a\ufffd":"\ufffd😀","\\\\ud83d":1}',
  );
});

test("a key named __proto__ stays a key [X-D02]", () => {
  const value = parseJson(`{"__proto__":{"x":"${SECRET}"}}`);
  expect(cleanJson(value, new TextCleaner(redactor)).text).toBe('{"__proto__":{"x":"***"}}');
});
