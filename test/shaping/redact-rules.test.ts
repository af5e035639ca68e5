import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import type { JsonValue } from "../../src/core/json.ts";
import { redactorOfResults } from "../../src/secrets/result-redactor.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { redactError } from "../../src/shaping/redact-error.ts";
import { parseResultRules } from "../../src/shaping/result-rules.ts";
import { createResultShaper } from "../../src/shaping/result-shaper.ts";
import { cpuMs } from "../config/cpu-time.ts";
import { makeCall, resultEvent, shapeOne, source, redactor as testRedactor } from "./fixtures.ts";

const TOKEN = `AKIA${"ABCD".repeat(4)}`;

/** What a result comes to by the rules of a block. */
async function shaped(block: JsonValue, result: Parameters<typeof resultEvent>[0]) {
  const { rules, issues } = parseResultRules({ redact: block }, { delivery: "conclusive" });
  expect(issues).toEqual([]);
  const redactor = redactorOfResults(rules.redact, createSecrets({}));
  const shaper = createResultShaper({ tool: "t", rules, redactor });
  for await (const event of shaper.shape(source(resultEvent(result)), makeCall())) {
    if (event.type === "completed") return event.result;
  }
  throw new Error("not completed");
}

test("fields are masked at any depth, in any case, through lists, with all they hold", async () => {
  const value = {
    Password: "a",
    card: { number: 4111, owner: "me" },
    orders: [{ number: 1, CARD: [{ number: "x" }] }],
    user: { password: { old: "b", new: "c" } },
  };
  const got = await shaped({ fields: ["password", "card.number"] }, { value });
  expect(JSON.parse(got.structuredJson ?? "")).toEqual({
    Password: "***",
    card: { number: "***", owner: "me" },
    orders: [{ number: 1, CARD: [{ number: "***" }] }],
    user: { password: "***" },
  });
  expect(got.notices).toEqual([
    { reason: "MASKED", message: "Values of fields that are not to be shown stand as ***: password, card.number." },
  ]);
});

test("fields are masked in texts that are JSON, and before anything else looks into an answer", async () => {
  const content = [
    { type: "text", text: '{"pin": 1234, "ok": true}' },
    { type: "text", text: "pin is no JSON here" },
  ] as const;
  expect((await shaped({ fields: ["pin"] }, { content })).content).toEqual([
    { type: "text", text: '{"pin":"***","ok":true}' },
    { type: "text", text: "pin is no JSON here" },
  ]);
  const failed = await shapeOne(
    { value: { code: 1, message: "wrong pin 1234" } },
    {
      rules: {
        successField: "code",
        successValue: 0,
        redact: { tokens: true, fields: ["message"], patterns: [] },
      },
    },
  );
  expect(failed.failure?.message).toBe("order_status: the tool answered that it failed: *** (code is 1, success is 0)");
});

test("patterns are masked in texts, keys and values, also where JSON writes them otherwise", async () => {
  const got = await shaped(
    { patterns: ["4\\d{3}", '(?i)say "\\w+"', "^start"] },
    {
      value: { "card 4111": ['SAY "hello" 4222', 4333, "start", "no start"] },
    },
  );
  expect(JSON.parse(got.structuredJson ?? "")).toEqual({ "card ***": ["*** ***", "***", "***", "no start"] });
});

test("what has the shape of a credential is masked, unless the tool says otherwise", async () => {
  const content = [{ type: "text", text: `key ${TOKEN}` }] as const;
  expect((await shaped({ tokens: true }, { content })).content).toEqual([{ type: "text", text: "key ***" }]);
  expect((await shaped({ tokens: false }, { content })).content).toEqual(content);
});

test("two keys that are masked alike stay two", async () => {
  const got = await shaped({ patterns: ["k\\d"] }, { value: { k1: "a", k2: "b", k3: "c" } });
  expect(got.structuredJson).toBe('{"***":"a","*** (2)":"b","*** (3)":"c"}');
});

test("bytes are looked through, as text where they are some", async () => {
  const bytes = (text: string) => new Uint8Array(Buffer.from(text));
  const content = [
    { type: "blob", mimeType: "application/json", data: bytes(`{"é":"${TOKEN}"}`) },
    { type: "blob", mimeType: "image/png", data: bytes(`\u0001${TOKEN}\u0002`) },
    { type: "blob", mimeType: "image/png", data: bytes("\u0001é\u0002") },
  ] as const;
  const { content: got } = await shaped({ tokens: true }, { content });
  const texts = got.map((part) => (part.type === "blob" ? Buffer.from(part.data).toString() : ""));
  expect(texts).toEqual(['{"é":"***"}', "\u0001***\u0002", "\u0001é\u0002"]);
});

test.for([
  [{ patterns: ["(a)\\1"] }, "beyond linear time"],
  [{ patterns: ["(?=a)b"] }, "beyond linear time"],
  [{ patterns: ["a*"] }, "matches the empty text"],
  [{ patterns: ["("] }, "not a regular expression"],
  [{ patterns: ["(x{900}){5}"] }, "too large"],
] as const)("a pattern that cannot be used is refused: %j", ([redact, words]) => {
  const { issues } = parseResultRules({ redact }, { delivery: "conclusive" });
  expect(issues).toEqual([{ pointer: "/redact/patterns/0", message: expect.stringContaining(words) }]);
});

test("fields need a whole answer that is JSON", () => {
  const redact = { fields: ["a"] };
  const issuesOf = (block: Readonly<Record<string, JsonValue>>, delivery: "conclusive" | "incremental") =>
    parseResultRules(block, { delivery }).issues;
  expect(issuesOf({ redact }, "incremental")).toEqual([
    { pointer: "/redact/fields", message: expect.stringContaining("use `redact.patterns`") },
  ]);
  expect(issuesOf({ redact, format: "text" }, "conclusive")).toEqual([
    { pointer: "/redact/fields", message: expect.stringContaining("looks into JSON") },
  ]);
});

test("a tool's rules stand beside the gateway's, and its own switch counts", () => {
  const defaultRedact = { tokens: false, fields: ["a"], patterns: ["b"] };
  const { rules, explain } = parseResultRules(
    { redact: { tokens: true, fields: ["c"] } },
    { delivery: "conclusive", defaults: { redact: defaultRedact } },
  );
  expect(rules.redact).toEqual({ tokens: true, fields: ["a", "c"], patterns: ["b"] });
  expect(explain().filter(({ key }) => key.startsWith("result.redact"))).toEqual([
    { key: "result.redact.tokens", value: "true", declared: true },
    { key: "result.redact.fields", value: '["a","c"]', declared: true },
    { key: "result.redact.patterns", value: '["b"]', declared: false },
  ]);
});

test("the text of a stream is masked by patterns line by line, however it is cut", () => {
  const { rules } = parseResultRules({ redact: { patterns: ["card \\d{4}"] } }, { delivery: "incremental" });
  const redactor = redactorOfResults(rules.redact, createSecrets({}));
  const text = `a card 4111 b\n${"x".repeat(5_000)}\ncard 4222`;
  const whole = redactor.text(text);
  expect(whole).toBe(`a *** b\n${"x".repeat(5_000)}\n***`);
  const stream = redactor.stream();
  expect(Array.from(text, (sign) => stream.push(sign)).join("") + stream.end()).toBe(whole);
  expect(redactor.stream().push("one line\nand a half")).toBe("one line\n");
});

test("a hostile pattern and a hostile text take time in proportion to the text [X-D04]", () => {
  const { rules, issues } = parseResultRules({ redact: { patterns: ["^(a+)+$"] } }, { delivery: "conclusive" });
  expect(issues).toEqual([]);
  const redactor = redactorOfResults(rules.redact, createSecrets({}));
  const text = `${"a".repeat(50_000)}!`;
  expect(cpuMs(() => expect(redactor.text(text)).toBe(text))).toBeLessThan(5_000);
});

test("an error that holds a secret is the same one without it [K-D01]", () => {
  const error = new GatewayError("UPSTREAM_UNREACHABLE", "no hunter22", {
    modelMessage: "hunter22 again",
    metadata: { host: "x", key: "hunter22" },
    violations: [{ field: "/a", description: "got hunter22", reason: "WRONG_TYPE" }],
    effect: "unknown",
    retryAfterMs: 5,
  });
  const clean = redactError(error, testRedactor);
  expect(clean).toMatchObject({
    reason: "UPSTREAM_UNREACHABLE",
    message: "no ***",
    modelMessage: "*** again",
    metadata: { host: "x", key: "***" },
    violations: [{ field: "/a", description: "got ***", reason: "WRONG_TYPE" }],
    effect: "unknown",
    retryAfterMs: 5,
    cause: error,
  });
  expect(redactError(clean, testRedactor)).toBe(clean);
});

test("looking for 50 secrets and all shapes in 1 MB of clean text takes some milliseconds of CPU", () => {
  const env = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`S${n}`, `plant${n}Zq7Wk4Xv9Rb2Mn+/="& ${n}`]));
  const { source: from, redactor } = createSecrets(env);
  for (const name of Object.keys(env)) from.resolve(name);
  const line = '{"id":12,"name":"Order of the shop","note":"left at the door, signed by the neighbour"},';
  const text = line.repeat(Math.ceil(1_000_000 / line.length));
  const took = Array.from({ length: 5 }, () => {
    return cpuMs(() => expect(redactor.text(text) === text).toBe(true));
  });
  expect(Math.min(...took)).toBeLessThan(60);
});
