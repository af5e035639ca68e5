import { expect, test } from "vitest";
import { createArrangeFields } from "../../src/shaping/arrange-fields.ts";
import { fillTemplate, parseResultTemplate } from "../../src/shaping/result-template.ts";
import { charactersOfTokens } from "../../src/shaping/tokens.ts";
import { resultEvent, SECRET, shapeAll, shapeOne, source } from "./fixtures.ts";

test.each([
  [0, "0", true],
  ["0", 0, true],
  [true, "True", true],
  ["ok", "OK", true],
  [0, false, false],
  [null, "null", false],
  [[0], "0", false],
] as const)("loose: %j is success where %j is declared: %j [S2-90]", async (got, successValue, ok) => {
  const rules = { successField: "code", successValue } as const;
  expect((await shapeOne({ value: { code: got } }, { rules: { ...rules, loose: true } })).failure === undefined).toBe(
    ok,
  );
  expect((await shapeOne({ value: { code: got } }, { rules })).failure?.reason).toBe("TOOL_FAILED");
});

test("error_field names the words of a failure, before those that are found by habit [A-D05]", async () => {
  const rules = { successField: "code", successValue: 0, errorField: "problem.text" } as const;
  const value = { code: 5001, message: "see below", problem: { text: `locked  by\n${SECRET}` }, data: null };
  expect((await shapeOne({ value }, { rules })).failure?.message).toBe(
    "order_status: the tool answered that it failed: locked by *** (code is 5001, success is 0)",
  );
  expect((await shapeOne({ value: { code: 1, message: "see" } }, { rules })).failure?.message).toContain(
    "failed: see (",
  );
});

test("without success_field an answer that holds something in error_field is a failure", async () => {
  const rules = { errorField: "errors[0]" } as const;
  const got = await shapeOne(
    { value: { data: { a: 1 }, errors: [{ message: "no such order" }] }, effect: "committed" },
    { rules },
  );
  expect(got).toMatchObject({ structuredJson: undefined, effect: "unknown" });
  expect(got.failure).toMatchObject({ reason: "TOOL_FAILED", retryable: false, upstreamFault: false });
  expect(got.failure?.message).toBe(
    "order_status: the tool answered that it failed: no such order (errors[0] is an object)",
  );
  for (const error of [null, false, "", 0, [], {}]) {
    expect(await shapeOne({ value: { error } }, { rules: { errorField: "error" } })).toMatchObject({
      failure: undefined,
    });
  }
  expect(await shapeOne({ value: { data: 1 } }, { rules })).toMatchObject({ failure: undefined });
});

test("fields keeps, drops and renames, through lists, and nothing else changes [S2-116]", async () => {
  const value = {
    data: [{ id: 1n, buyer: { name: "Ada", mail: "a@x" }, "a.b": 1, trace: "t" }, { id: 2, trace: "u" }, "odd"],
  };
  const shape = async (fields: object): Promise<unknown> => {
    const { structuredJson } = await shapeOne({ value }, { rules: { dataField: "data", fields } });
    return JSON.parse(structuredJson ?? "");
  };
  expect(await shape({ keep: ["id", "buyer.name"] })).toEqual([{ id: 1, buyer: { name: "Ada" } }, { id: 2 }, "odd"]);
  expect(await shape({ keep: ["buyer"], drop: ["buyer.mail"] })).toEqual([{ buyer: { name: "Ada" } }, {}, "odd"]);
  expect(await shape({ drop: ["trace", "buyer"], rename: { id: "number" } })).toEqual([
    { number: 1, "a.b": 1 },
    { number: 2 },
    "odd",
  ]);
  expect(createArrangeFields({ rename: { x: "__proto__" } })({ x: 1 })).toEqual(JSON.parse('{"__proto__":1}'));
});

test("a failure's data has the declared fields too", async () => {
  const rules = {
    successField: "ok",
    successValue: true,
    dataField: "data",
    fields: { keep: ["id"] },
    template: "{id}",
  } as const;
  const got = await shapeOne({ value: { ok: false, data: { id: 7, trace: "t" } } }, { rules });
  expect(got).toMatchObject({ structuredJson: '{"id":7}', failure: { reason: "TOOL_FAILED" } });
});

test("template makes text of a result, a line an item", async () => {
  const value = {
    data: [
      { id: 871234567890123457n, state: "paid", items: [{ name: "tea" }] },
      { id: 2, state: null },
    ],
  };
  const got = await shapeOne(
    { value },
    { rules: { dataField: "data", template: "{{{id}}} {state}: {items[0].name}" } },
  );
  expect(got).toMatchObject({
    structuredJson: undefined,
    content: [{ type: "text", text: "{871234567890123457} paid: tea\n{2} : " }],
  });
  expect(fillTemplate(parseResultTemplate("{a}") ?? [], { a: { b: [1, null] } })).toBe('{"b":[1,null]}');
  for (const wrong of ["{", "}", "{a", "a}", "{}", "{a b..c}", "{a{b}}"])
    expect(parseResultTemplate(wrong)).toBeUndefined();
});

test("max_tokens limits by an estimate, and the lower of both limits counts [S2-113]", async () => {
  expect(charactersOfTokens(100, "plain words of ascii")).toBe(300);
  expect(charactersOfTokens(100, "订单已发货")).toBe(100);
  expect(charactersOfTokens(1, "")).toBe(1);
  const text = "word ".repeat(400);
  const lengthWith = async (rules: object): Promise<number> => {
    const [part] = (await shapeOne({ content: [{ type: "text", text }] }, { rules })).content;
    return part?.type === "text" ? part.text.length : 0;
  };
  expect(await lengthWith({ maxTokens: 100 })).toBe(300);
  expect(await lengthWith({ maxTokens: 100, maxLength: 200 })).toBe(200);
  expect(await lengthWith({ maxTokens: 100, truncation: "summary" })).toBeLessThanOrEqual(300);
  expect(await lengthWith({ maxTokens: 700 })).toBe(text.length);
  expect(
    (await shapeOne({ value: text }, { rules: { maxTokens: 9, truncation: "error" } })).failure?.message,
  ).toContain("longer than about 9 tokens");
});

test("a dry run is not judged by error_field, and streams pass by", async () => {
  const events = await shapeAll(source(resultEvent({ value: { error: "x" } })), {
    rules: { errorField: "error" },
    call: { validateOnly: true },
  });
  expect(events.at(-1)).toMatchObject({ result: { failure: undefined } });
});
