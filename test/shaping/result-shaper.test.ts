import { expect, test } from "vitest";
import type { ContentPart, ToolCall, ToolEvent, UpstreamEvent } from "../../src/core/call.ts";
import { type JsonValue, parseJson } from "../../src/core/json.ts";
import { codePointCount } from "../../src/core/text.ts";
import { createResultShaper } from "../../src/shaping/result-shaper.ts";
import { createJudge, judgeResults } from "../../src/shaping/success.ts";
import { cpuMsOf } from "../config/cpu-time.ts";
import { makeCall, makeRules, redactor, resultEvent, SECRET, shapeAll, shapeOne, source } from "./fixtures.ts";

const ENVELOPE = { successField: "code", successValue: 0, dataField: "data" } as const;

function textPart(value: string): ContentPart {
  return { type: "text", text: value };
}

test("the business data is the result and the envelope is left out [S2-83] [S2-89] [S2-92]", async () => {
  const value = { code: 0, message: "ok", data: { status: "已发货", tracker: "SF1234567890" } };
  expect(await shapeOne({ value, effect: "committed" }, { rules: ENVELOPE })).toEqual({
    content: [],
    structuredJson: '{"status":"已发货","tracker":"SF1234567890"}',
    failure: undefined,
    truncation: undefined,
    effect: "committed",
  });
});

test("another value of the success field is the tool's own failure with its code and words [A-D05]", async () => {
  const value = { code: 5001, message: "locked", data: null };
  const got = await shapeOne({ value, effect: "committed", upstreamCode: 200 }, { rules: ENVELOPE });
  expect(got).toEqual({
    content: [],
    structuredJson: undefined,
    truncation: undefined,
    effect: "unknown",
    failure: {
      reason: "TOOL_FAILED",
      message: "order_status: the tool answered that it failed: locked (code is 5001, success is 0)",
      upstreamCode: 200,
      retryable: false,
      upstreamFault: false,
    },
  });
});

test("zero as text is not zero, and true is not 1 [S2-90]", async () => {
  for (const code of ["0", false, null, 0.5, "ok"]) {
    const got = await shapeOne({ value: { code, data: 1 } }, { rules: ENVELOPE });
    expect(got.failure?.reason).toBe("TOOL_FAILED");
  }
  expect((await shapeOne({ value: parseJson('{"code":0.0,"data":1}') }, { rules: ENVELOPE })).failure).toBeUndefined();
  const rules = { successField: "error", successValue: null };
  expect((await shapeOne({ value: { error: null } }, { rules })).failure).toBeUndefined();
});

test("the words of a failure are found where APIs put them, and its data goes along", async () => {
  const failureOf = (value: JsonValue) => shapeOne({ value }, { rules: ENVELOPE });
  expect((await failureOf({ code: 1, msg: " no\n stock " })).failure?.message).toContain(": no stock (code is 1");
  expect((await failureOf({ code: 1, error: { message: "closed" } })).failure?.message).toContain(": closed (");
  expect((await failureOf({ code: 1, error: 7 })).failure?.message).toBe(
    "order_status: the tool answered that it failed (code is 1, success is 0)",
  );
  expect(await failureOf({ code: 1, data: { retry_at: "12:00" } })).toMatchObject({
    structuredJson: '{"retry_at":"12:00"}',
    failure: { reason: "TOOL_FAILED" },
  });
  const nested = { rules: { successField: "status.ok", successValue: true } };
  const got = await shapeOne({ value: { message: "outer", status: { ok: false, message: "inner" } } }, nested);
  expect(got.failure?.message).toContain(": inner (status.ok is false, success is true)");
});

test("a missing field is a failure that names the path and what was there [X-D03]", async () => {
  const messageOf = async (value: JsonValue) => {
    const { failure, structuredJson, content } = await shapeOne(
      { value },
      { rules: { ...ENVELOPE, dataField: "data.items[0]" } },
    );
    expect([structuredJson, content]).toEqual([undefined, []]);
    return `${failure?.reason} ${failure?.message}`;
  };
  const prefix = "FIELD_MISSING order_status: the answer lacks the field";
  expect(await messageOf({ errno: 0, msg: "x" })).toBe(`${prefix} "code": it has errno, msg`);
  expect(await messageOf([1])).toBe(`${prefix} "code": it is a list of 1`);
  expect(await messageOf("code")).toBe(`${prefix} "code": it is a string`);
  expect(await messageOf({ code: 0, data: null })).toBe(`${prefix} "data.items[0]": "data" is null`);
  expect(await messageOf({ code: 0, data: { items: [] } })).toBe(
    `${prefix} "data.items[0]": "data.items" is a list of 0`,
  );
  expect(await messageOf({})).toBe(`${prefix} "code": it has no fields`);
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, i]));
  expect(await messageOf(many)).toMatch(/: it has k0, .*k9, … \(30 in all\)$/);
});

test("paths of a prototype lead nowhere [X-D02] [X-D03]", async () => {
  for (const dataField of ["constructor.name", "__proto__.x", "data.length"]) {
    expect((await shapeOne({ value: { data: [1] } }, { rules: { dataField } })).failure?.reason).toBe("FIELD_MISSING");
  }
  const value = parseJson('{"data":{"__proto__":{"admin":true}}}');
  expect((await shapeOne({ value }, { rules: { dataField: "data" } })).structuredJson).toBe(
    '{"__proto__":{"admin":true}}',
  );
});

test("nested data, null and text each come out in their form [S2-05] [S2-91]", async () => {
  const pick = (value: JsonValue, dataField: string) => shapeOne({ value }, { rules: { dataField } });
  expect((await pick({ data: { items: [{ id: 7 }] } }, "data.items[0].id")).structuredJson).toBe("7");
  expect(await pick({ data: null }, "data")).toMatchObject({ structuredJson: "null", failure: undefined });
  expect(await pick({ data: "hello" }, "data")).toMatchObject({
    structuredJson: undefined,
    content: [textPart("hello")],
  });
});

test("64-bit ids keep their digits [A-D03]", async () => {
  const value = parseJson('{"code":0,"data":{"id":871234567890123457,"f":0.1}}');
  expect((await shapeOne({ value }, { rules: ENVELOPE })).structuredJson).toBe('{"id":871234567890123457,"f":0.1}');
});

test("an answer that has no content by its status is a success, whatever the rules look for [U-D01]", async () => {
  for (const upstreamCode of [204, 205]) {
    const shaped = await shapeOne({ upstreamCode, effect: "committed" }, { rules: { ...ENVELOPE, dataField: "data" } });
    expect(shaped).toMatchObject({ failure: undefined, content: [], structuredJson: undefined });
  }
});

test("an empty answer has no data to lack, but a success field it lacks", async () => {
  expect(await shapeOne({}, { rules: { dataField: "data" } })).toMatchObject({ failure: undefined, content: [] });
  expect((await shapeOne({}, { rules: ENVELOPE })).failure?.message).toBe(
    'order_status: the answer lacks the field "code": it is empty',
  );
  const page = await shapeOne({ content: [textPart("<html>")] }, { rules: { dataField: "data" } });
  expect(page).toMatchObject({ content: [], failure: { message: expect.stringMatching(/: it is no JSON$/) } });
});

test("a call that only validates is held against no rule", async () => {
  expect(await shapeOne({}, { rules: ENVELOPE, call: { validateOnly: true } })).toMatchObject({ failure: undefined });
});

test("text over max_length is cut with its mark, by the rule or by a lower limit of the call [S2-113] [S2-115]", async () => {
  const content = [textPart("x".repeat(8_000))];
  const cut = await shapeOne({ content }, { rules: { maxLength: 1_200 } });
  expect(cut.truncation).toEqual({ originalLength: 8_000, mode: "head" });
  expect(cut.content).toEqual([
    textPart(expect.stringMatching(/^x+\n\[cut: first \d+ of 8000 characters\]$/) as string),
  ]);
  const lengthOf = async (maxLength: number) => {
    const got = await shapeOne({ content }, { rules: { maxLength: 1_200, truncation: "tail" }, call: { maxLength } });
    return got.content.map((part) => (part.type === "text" ? part.text.length : 0));
  };
  expect((await lengthOf(100))[0]).toBeLessThanOrEqual(100);
  expect((await lengthOf(5_000))[0]).toBeLessThanOrEqual(1_200);
});

test("cut text is well-formed even if it was not before, down to one character [A-D04]", async () => {
  for (const maxLength of [1, 10]) {
    const content = [textPart(`${"a".repeat(9)}😀😀\ud83d`)];
    const got = await shapeOne({ content }, { rules: { maxLength } });
    const [part] = got.content;
    if (part?.type !== "text") throw new Error("no text");
    expect(part.text.isWellFormed()).toBe(true);
    expect(Buffer.from(part.text).toString()).toBe(part.text);
    expect(codePointCount(part.text)).toBeLessThanOrEqual(maxLength);
    expect(got.truncation?.originalLength).toBe(12);
  }
  const lone = await shapeOne({ value: { t: "a\ud83d", "\ude00": ["😀"] } });
  expect(parseJson(lone.structuredJson ?? "")).toEqual({ t: "a\ufffd", "\ufffd": ["😀"] });
});

test("JSON over the limit becomes text with a mark, never broken JSON [A-D09]", async () => {
  const value = Array.from({ length: 500 }, (_, i) => ({ id: i, name: `item ${i}` }));
  const length = JSON.stringify(value).length;
  for (const truncation of ["head", "tail", "head_tail", "summary"] as const) {
    const got = await shapeOne({ value }, { rules: { maxLength: 200, truncation } });
    expect(got.structuredJson).toBeUndefined();
    expect(got.truncation).toEqual({ originalLength: length, mode: truncation });
    expect(got.content).toHaveLength(1);
    const [part] = got.content;
    const text = part?.type === "text" ? part.text : "";
    expect(text.length).toBeLessThanOrEqual(200);
    expect(text).toContain(`of ${length} characters`);
  }
  expect((await shapeOne({ value }, { rules: { maxLength: length } })).structuredJson).toHaveLength(length);
});

test("a summary is made of what was extracted and redacted, and steered by the question of the call [S2-18] [S2-114]", async () => {
  const items = Array.from({ length: 300 }, (_, i) => ({
    code: `C-${i}`,
    owner: i === 7 ? SECRET : `owner ${i % 30}`,
  }));
  const rules = { dataField: "data", maxLength: 600, truncation: "summary" } as const;
  const shape = async (call: Partial<ToolCall>): Promise<string> => {
    const got = await shapeOne({ value: { code: 0, message: "fine", data: { items } } }, { rules, call });
    expect(got).toMatchObject({ structuredJson: undefined, failure: undefined, truncation: { mode: "summary" } });
    const [part] = got.content;
    return part?.type === "text" ? part.text : "";
  };
  const plain = await shape({});
  expect(plain).toContain("$.items: 300 rows, 2 fields");
  expect(plain).not.toMatch(/fine|C-187/);
  expect(await shape({ question: "who owns C-187?" })).toContain("C-187\towner 7");
  expect(await shape({ arguments: { code: "C-187" } })).toContain("C-187\towner 7");
  expect(await shape({ question: "C-7", arguments: { code: "C-187" } })).toContain("C-7\t***");
});

test("a summary of text keeps other parts, and a result within its limit is left as it is", async () => {
  const link = { type: "link", uri: "https://docs.example/x", mimeType: "text/plain", name: "x" } as const;
  const text = Array.from({ length: 60 }, (_, i) => `## Part ${i}\n\nWords about part ${i}, and more of them.`).join(
    "\n\n",
  );
  const rules = { maxLength: 400, truncation: "summary" } as const;
  const got = await shapeOne({ content: [textPart(text), link] }, { rules });
  expect(got.content[1]).toEqual(link);
  expect(got.truncation).toEqual({ mode: "summary", originalLength: text.length });
  const short = await shapeOne({ content: [textPart("a\r\n b ")] }, { rules });
  expect(short).toMatchObject({ content: [textPart("a\r\n b ")], truncation: undefined });
});

test("truncation error makes an over-long result a failure", async () => {
  const rules = { maxLength: 5, truncation: "error" } as const;
  for (const result of [{ value: "too long" }, { value: [1, 2, 3] }, { content: [textPart("too long")] }]) {
    expect(await shapeOne({ ...result, effect: "committed" }, { rules })).toMatchObject({
      content: [],
      structuredJson: undefined,
      effect: "committed",
      failure: {
        reason: "RESULT_TOO_LONG",
        message: "order_status: the result is longer than 5 characters; ask for less, or raise the tool's `max_length`",
      },
    });
  }
  expect((await shapeOne({ value: "short" }, { rules })).failure).toBeUndefined();
});

test("several texts over the limit together become one, other parts stay", async () => {
  const link: ContentPart = { type: "link", uri: "https://example.com", mimeType: "text/html", name: "page" };
  const content = [textPart("a".repeat(60)), link, textPart("b".repeat(60))];
  const got = await shapeOne({ content }, { rules: { maxLength: 100 } });
  expect(got.content).toEqual([textPart(expect.stringMatching(/^a+\n/) as string), link]);
  expect(got.truncation).toEqual({ originalLength: 121, mode: "head" });
  expect((await shapeOne({ content }, { rules: { maxLength: 121 } })).content).toEqual(content);
});

test("binary parts are passed on up to 3 MiB, and beyond they are a failure", async () => {
  const blob = (bytes: number): ContentPart => ({ type: "blob", mimeType: "image/png", data: new Uint8Array(bytes) });
  const small = [blob(1_000), textPart("caption")];
  expect((await shapeOne({ content: small })).content).toEqual(small);
  const got = await shapeOne({ content: [blob(2_000_000), blob(2_000_000)] });
  expect(got).toMatchObject({ content: [], failure: { reason: "RESULT_TOO_LONG" } });
});

test("a failure of the upstream keeps its message and the beginning of its content, masked", async () => {
  const failure = {
    reason: "UPSTREAM_STATUS",
    message: `HTTP 500: ${SECRET} ${"x".repeat(5_000)}`,
    upstreamCode: 500,
    retryable: true,
    upstreamFault: true,
  } as const;
  const got = await shapeOne({ failure, content: [textPart(`${SECRET}${"y".repeat(50_000)}`)], effect: "unknown" });
  expect(got.failure).toMatchObject({ reason: "UPSTREAM_STATUS", upstreamCode: 500, retryable: true });
  expect(got.failure?.message.length).toBeLessThanOrEqual(2_000);
  expect(JSON.stringify(got)).not.toContain(SECRET);
  const [part] = got.content;
  expect(part?.type === "text" && part.text.length).toBeLessThanOrEqual(4_000);
  expect(got.effect).toBe("unknown");
});

test("secrets are masked everywhere in a result [K-D04]", async () => {
  const value = { [SECRET]: [`a ${SECRET} b`], n: 1 };
  expect((await shapeOne({ value })).structuredJson).toBe('{"***":["a *** b"],"n":1}');
  const link: ContentPart = { type: "link", uri: `https://x/?k=${SECRET}`, mimeType: "a/b", name: SECRET };
  expect((await shapeOne({ content: [textPart(SECRET), link] })).content).toEqual([
    textPart("***"),
    { type: "link", uri: "https://x/?k=***", mimeType: "a/b", name: "***" },
  ]);
});

test("a secret is masked before a text is cut, so that no half of it stays", async () => {
  const content = [textPart(`${"a".repeat(95)}${SECRET}${"b".repeat(100)}`)];
  const got = await shapeOne({ content }, { rules: { maxLength: 100 } });
  expect(JSON.stringify(got)).not.toContain(SECRET.slice(0, 4));
});

test("deltas go out at once, redacted even where a secret is split, and then the result [K-D04]", async () => {
  const events = await shapeAll(
    source(
      { type: "upstream-delta", text: "key: hun" },
      { type: "upstream-delta", text: "ter22!" },
      { type: "upstream-delta", text: "hun" },
      resultEvent({ effect: "committed", attempts: 2 }),
    ),
  );
  expect(events).toEqual([
    { type: "delta", index: 0, text: "key: " },
    { type: "delta", index: 0, text: "***!" },
    { type: "delta", index: 0, text: "hun" },
    {
      type: "completed",
      result: {
        content: [],
        structuredJson: undefined,
        failure: undefined,
        truncation: undefined,
        notices: [{ reason: "MASKED", message: "Secrets, or what has the shape of one, stand as ***." }],
      },
      effect: "committed",
      attempts: 2,
    },
  ]);
});

test("progress, log lines and exchanges are masked and passed on", async () => {
  const exchange = {
    method: "GET",
    url: `http://x/?k=${SECRET}`,
    requestHeaders: [["authorization", `Bearer ${SECRET}`]],
    requestBody: SECRET,
    status: 200,
    responseHeaders: [["set-cookie", SECRET]],
    firstByteMs: 3,
  } as const;
  const events = await shapeAll(
    source(
      { type: "progress", current: 1, total: undefined, message: SECRET },
      { type: "log", level: "info", message: SECRET },
      { type: "exchange", exchange },
      resultEvent({ value: 1 }),
    ),
  );
  expect(events.map(({ type }) => type)).toEqual(["progress", "log", "exchange", "completed"]);
  expect(JSON.stringify(events)).not.toContain(SECRET);
  expect(events[2]).toMatchObject({ exchange: { method: "GET", url: "http://x/?k=***", status: 200 } });
});

function endless(text: string, state: { returned: boolean; given: number }): AsyncGenerator<UpstreamEvent> {
  return (async function* () {
    try {
      while (true) {
        state.given++;
        yield { type: "upstream-delta" as const, text };
      }
    } finally {
      state.returned = true;
    }
  })();
}

test("a stream is ended at max_length: its beginning goes out whole, the upstream is cancelled, the result says so", async () => {
  const state = { returned: false, given: 0 };
  const events = await shapeAll(endless("😀a", state), { rules: { maxLength: 5 } });
  const texts = events.flatMap((event) => (event.type === "delta" ? [event.text] : []));
  expect(texts).toEqual(["😀a", "😀a", "😀"]);
  expect(state).toEqual({ returned: true, given: 3 });
  expect(events.at(-1)).toMatchObject({
    type: "completed",
    result: { truncation: { originalLength: undefined, mode: "head" }, failure: undefined, content: [] },
    effect: "unknown",
  });
});

test("a stream ended at its limit had no effect where the tool only reads, and is a failure with truncation error", async () => {
  const state = { returned: false, given: 0 };
  const last = async (options: Parameters<typeof shapeAll>[1]): Promise<ToolEvent | undefined> =>
    (await shapeAll(endless("abc", state), options)).at(-1);
  expect(await last({ rules: { maxLength: 5 }, readOnly: true })).toMatchObject({ effect: "none" });
  expect(await last({ rules: { maxLength: 5, truncation: "error" } })).toMatchObject({
    result: { failure: { reason: "RESULT_TOO_LONG" }, truncation: undefined },
  });
  expect(await last({ rules: { maxLength: Number.POSITIVE_INFINITY }, call: { maxLength: 4 } })).toMatchObject({
    result: { truncation: { mode: "head" } },
  });
});

test("a stream of exactly max_length is whole", async () => {
  const events = await shapeAll(source({ type: "upstream-delta", text: "abcde" }, resultEvent({})), {
    rules: { maxLength: 5 },
  });
  expect(events.at(-1)).toMatchObject({ result: { truncation: undefined } });
});

test("what a stream kept back at its end is counted too", async () => {
  const events = await shapeAll(source({ type: "upstream-delta", text: "abchunte" }, resultEvent({})), {
    rules: { maxLength: 5 },
  });
  expect(events).toMatchObject([
    { type: "delta", text: "abc" },
    { type: "delta", text: "hu" },
    { type: "completed", result: { truncation: { mode: "head" } }, effect: "none" },
  ]);
});

test("content after a stream has what is left of the limit", async () => {
  const events = await shapeAll(
    source({ type: "upstream-delta", text: "abcde" }, resultEvent({ content: [textPart("fgh")] })),
    { rules: { maxLength: 6 } },
  );
  expect(events.at(-1)).toMatchObject({ result: { content: [textPart("…")], truncation: { originalLength: 3 } } });
});

test("a reader that leaves early cancels the upstream, and nothing is asked of it before it is needed", async () => {
  const state = { returned: false, given: 0 };
  const shaper = createResultShaper({ tool: "t", rules: makeRules(), redactor });
  const events = shaper.shape(endless("x", state), makeCall())[Symbol.asyncIterator]();
  await new Promise((resolve) => setImmediate(resolve));
  expect(state.given).toBe(0);
  await events.next();
  expect(state.given).toBe(1);
  await events.return?.();
  expect(state.returned).toBe(true);
});

test("inside the pipeline a tool's own no is seen as the failure it is", async () => {
  const judge = createJudge("order_status", makeRules(ENVELOPE));
  const invoke = judgeResults(judge, () => source(resultEvent({ value: { code: 7, message: "no", data: [1] } })));
  const context = undefined as never;
  const events: UpstreamEvent[] = [];
  for await (const event of invoke(makeCall(), context)) events.push(event);
  expect(events).toMatchObject([
    { type: "upstream-result", result: { value: [1], failure: { reason: "TOOL_FAILED" } } },
  ]);
  const shaped = (await shapeAll(source(...events), { rules: ENVELOPE })).at(-1);
  expect(shaped).toMatchObject({ result: { structuredJson: "[1]", failure: { reason: "TOOL_FAILED" } } });
  const dry = judgeResults(judge, () => source(resultEvent({})));
  for await (const event of dry(makeCall({ validateOnly: true }), context)) {
    expect(event).toEqual(resultEvent({}));
  }
});

test("a megabyte of JSON is shaped without a stall", async () => {
  const items = Array.from({ length: 12_000 }, (_, i) => ({
    id: i,
    name: `item ${i} 订单`,
    price: i / 7,
    tags: ["a"],
  }));
  const value = { code: 0, data: items };
  await shapeOne({ value }, { rules: { ...ENVELOPE, maxLength: 1_000_000 } });
  const spent = await cpuMsOf(async () => {
    const got = await shapeOne({ value }, { rules: { ...ENVELOPE, maxLength: 100_000 } });
    expect(got.truncation?.originalLength).toBeGreaterThan(800_000);
  });
  expect(spent).toBeLessThan(2_000);
});

const JSON_TEXT = '{"rows":12}';

test.each([
  ["the same JSON", { rows: 12 }, JSON_TEXT],
  ["the same JSON in another form", { rows: 12, a: 1 }, '{\n "a": 1.0, "rows": 12 }'],
  ["the one string in it", { content: "line\n" }, "line"],
  ["the string", "words", "words "],
])("a text that says the same as the JSON beside it is left out: %s", async (_, value, text) => {
  const result = await shapeOne({ value, content: [{ type: "text", text }] });
  if (typeof value === "string") expect(result.content).toEqual([{ type: "text", text: value }]);
  else expect(result).toMatchObject({ content: [], structuredJson: JSON.stringify(value) });
});

test("a text that says something else stands beside the JSON, and both count for the length", async () => {
  const content = [{ type: "text", text: "12 rows of 40" }] as const;
  expect(await shapeOne({ value: { rows: 12 }, content })).toMatchObject({ content, structuredJson: JSON_TEXT });
  const short = await shapeOne({ value: { rows: 12 }, content }, { rules: { maxLength: 20 } });
  expect(short).toMatchObject({ structuredJson: undefined, truncation: { originalLength: 25, mode: "head" } });
});

test("`format: text` takes the text of an answer that has JSON too", async () => {
  const given = { value: { rows: 12 }, content: [{ type: "text", text: "12 rows" }] } as const;
  expect(await shapeOne(given, { rules: { format: "text" } })).toMatchObject({
    content: given.content,
    structuredJson: undefined,
  });
});

test("rules look into a text that is JSON, where there is no other", async () => {
  const content = [{ type: "text", text: '{"success":false,"error":"no such table","data":[1]}' }] as const;
  const rules = { successField: "success", successValue: true, dataField: "data" };
  const said = await shapeOne({ content, effect: "committed" }, { rules });
  expect(said).toMatchObject({ failure: { reason: "TOOL_FAILED" }, effect: "unknown", structuredJson: "[1]" });
  expect(said.failure?.message).toContain("no such table");
  expect(await shapeOne({ content }, { rules: { dataField: "data" } })).toMatchObject({
    content: [],
    structuredJson: "[1]",
  });
  expect(await shapeOne({ content }, { rules: { format: "json" } })).toMatchObject({ content: [] });
  expect(await shapeOne({ content })).toMatchObject({ content, structuredJson: undefined });
});

test("what a tool says of its parts is redacted, and so are notices", async () => {
  const annotations = { audience: [SECRET], priority: 1, lastModified: SECRET };
  const result = await shapeOne({
    content: [
      { type: "text", text: "a", annotations, resource: { uri: `x:${SECRET}`, mimeType: SECRET } },
      { type: "blob", mimeType: "image/png", data: new Uint8Array([1]), resource: { uri: SECRET, mimeType: "" } },
      { type: "link", uri: SECRET, mimeType: "", name: SECRET, title: SECRET, description: SECRET, sizeBytes: 4 },
    ],
    notices: [{ reason: "CONTENT_UNREADABLE", message: `part\n${SECRET}` }],
  });
  expect(JSON.stringify(result)).not.toContain(SECRET);
  expect(result.notices).toMatchObject([
    { reason: "CONTENT_UNREADABLE", message: "part\\u000a***" },
    { reason: "MASKED" },
  ]);
  expect(result.content[2]).toEqual({
    type: "link",
    uri: "***",
    mimeType: "",
    name: "***",
    title: "***",
    description: "***",
    sizeBytes: 4,
  });
});

test("an image beside a text is bytes of its own, whatever the limit of the text [M-D18]", async () => {
  const data = new Uint8Array(150_000);
  const content = [
    { type: "text", text: "x".repeat(5_000) },
    { type: "blob", mimeType: "image/png", data },
  ] as const;
  const result = await shapeOne({ content }, { rules: { maxLength: 1_200 } });
  expect(result.content[1]).toEqual(content[1]);
  expect(result.content[0]).toMatchObject({ type: "text" });
  expect(JSON.stringify(result.content[0]).length).toBeLessThanOrEqual(1_240);
});

test.for([
  { effect: "committed", readOnly: false, deltas: 0 },
  { effect: "none", readOnly: true, deltas: 0 },
  { effect: "unknown", readOnly: false, deltas: 1 },
] as const)(
  "a fault of the gateway's own after the upstream acted does not say that nothing happened: $effect",
  async ({ effect, readOnly, deltas }) => {
    const breaks = (): never => {
      throw new TypeError("a bug");
    };
    const broken = { text: breaks, stream: () => ({ push: breaks, end: () => "" }) };
    const shaper = createResultShaper({ tool: "pay", rules: makeRules(), redactor: broken, readOnly });
    const delta: UpstreamEvent = { type: "upstream-delta", text: "x" };
    const events = source(...Array.from({ length: deltas }, () => delta), resultEvent({ value: "paid", effect }));
    const read = async (): Promise<void> => {
      for await (const event of shaper.shape(events, makeCall())) expect(event).toBeUndefined();
    };
    await expect(read()).rejects.toMatchObject({ reason: "INTERNAL", effect, metadata: { tool: "pay" } });
  },
);

test("what a tool asks for passes the rules of results, redacted and bounded", async () => {
  const request = {
    kind: "form",
    message: `for ${SECRET}`,
    params: { message: SECRET },
    schema: { type: "object" },
  } as const;
  const needsInput = { requests: new Map([["q1", request]]), state: "h", expiresInMs: 1_000 };
  const result = await shapeOne({ needsInput, effect: "unknown" }, { rules: { ...ENVELOPE, maxLength: 10 } });
  expect(result).toMatchObject({ failure: undefined, content: [], structuredJson: undefined, effect: "unknown" });
  expect(result.needsInput).toEqual({
    state: "h",
    requestsJson: '{"q1":{"kind":"form","message":"for ***","params":{"message":"***"},"schema":{"type":"object"}}}',
    expiresInMs: 1_000,
  });
  const large = { ...request, message: "x".repeat(600_000) };
  const refused = await shapeOne({ needsInput: { ...needsInput, requests: new Map([["q1", large]]) } });
  expect(refused.needsInput).toBeUndefined();
  expect(refused.failure?.reason).toBe("RESULT_TOO_LONG");
});
