import { search } from "@jmespath-community/jmespath";
import { expect, test } from "vitest";
import type { UpstreamResult } from "../../../src/core/call.ts";
import { type JsonValue, parseJson, stringifyJson } from "../../../src/core/json.ts";
import { parseResultRules } from "../../../src/shaping/result-rules.ts";
import { MAX_STEPS, SelectFault } from "../../../src/shaping/select/budget.ts";
import { createSelect } from "../../../src/shaping/select/create-select.ts";
import { evaluateSelect } from "../../../src/shaping/select/evaluate-select.ts";
import { parseSelect } from "../../../src/shaping/select/parse-select.ts";
import { jsonValue, seeded } from "../summary/fixtures.ts";

const SHOP: JsonValue = {
  open: true,
  orders: [
    { id: 3, state: "open", total: 20.5, tags: ["a", "b"], buyer: { name: "Ada" } },
    { id: 1, state: "sent", total: 7, tags: [], buyer: { name: "Bo" } },
    { id: 2, state: "open", total: 9, tags: ["c"], buyer: null },
  ],
  stock: { lamp: { left: 4 }, tent: { left: 0 }, empty: {} },
  matrix: [[1, 2], [3, [4]], 5],
  words: ["pear", "apple", "fig"],
  none: null,
};

const EXPRESSIONS = [
  "orders[0].id",
  "orders[-1].buyer.name",
  "orders[*].id",
  "orders[].tags[]",
  "orders[*].tags[0]",
  "orders[?state=='open'].{id: id, who: buyer.name}",
  "orders[?total > `8` && total <= `20.5`].id | [0]",
  "orders[?!buyer]",
  "orders[?contains(tags, 'b') || id == `1`].[id, total]",
  "orders[:2].id",
  "orders[::-1].id",
  "orders[-2:].id",
  "orders[5:1:-1]",
  "stock.*.left",
  "stock.lamp.*",
  "*.lamp",
  "matrix[]",
  "matrix[][]",
  "matrix[*][0]",
  "sort_by(orders, &id)[*].id",
  "max_by(orders, &total).id",
  "min_by(orders, &total).state",
  "map(&buyer.name, orders)",
  "length(orders)",
  "length(words[1])",
  "keys(stock)",
  "values(stock.lamp)",
  "sum(orders[*].total)",
  "avg(orders[*].id)",
  "join(', ', sort(words))",
  "reverse(words)",
  "reverse(words[0])",
  "not_null(none, missing, open)",
  "to_string(stock.lamp)",
  "to_string('x')",
  "to_number('12.5')",
  "to_number('x')",
  "to_array(none)",
  "type(matrix)",
  "merge(stock.lamp, {more: open})",
  "starts_with(words[0], 'pe')",
  "ends_with(words[2], 'g')",
  "abs(`-3`)",
  "ceil(orders[0].total)",
  "floor(orders[0].total)",
  "max(orders[*].id)",
  "min(words)",
  "orders == orders",
  'stock.lamp == `{"left": 4}`',
  "open && missing",
  "missing || orders[0].state",
  "!missing",
  "orders[1].total < `7`",
  "words[0] < words[1]",
  "@",
  "missing.*.deeper[0]",
  '"open"',
];

function evaluate(text: string, value: JsonValue): JsonValue {
  const parsed = parseSelect(text);
  if (!parsed.ok) throw new Error(`${text}: ${parsed.problem}`);
  return evaluateSelect(parsed.node, value);
}

/** What a call throws. */
function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("an expression gives what another implementation of the specification gives", () => {
  for (const text of EXPRESSIONS) {
    const other: unknown = search(JSON.parse(stringifyJson(SHOP)), text);
    expect(evaluate(text, SHOP), text).toEqual(other);
  }
});

test("paths, filters and projections give what another implementation gives on values of any form", () => {
  const texts = [
    "*",
    "*.*",
    "[]",
    "[*].id",
    "[?id].name",
    "*[?total > `100`].id",
    "[0]",
    "[*].nested.kind",
    "*.id | [0]",
  ];
  for (let seed = 1; seed <= 30; seed++) {
    const json = stringifyJson(jsonValue(seeded(seed), 4));
    // The other one does not know integers beyond 2^53.
    if (/\d{16}/.test(json)) continue;
    for (const text of texts) {
      const other: unknown = search(JSON.parse(json), text);
      expect(evaluate(text, parseJson(json)), `${text} of ${json.slice(0, 80)}`).toEqual(other);
    }
  }
});

test("integers keep all their digits", () => {
  const value = parseJson('{"items": [{"id": 9007199254740993}, {"id": 5}]}');
  expect(stringifyJson(evaluate("items[?id > `5`].id", value))).toBe("[9007199254740993]");
  expect(stringifyJson(evaluate("sum(items[*].id)", value))).toBe("9007199254740998");
  expect(evaluate("max_by(items, &id) == items[0]", value)).toBe(true);
});

test("names that objects have of themselves are no fields", () => {
  const value = parseJson('{"a": {}, "__proto__": {"x": 1}}');
  expect(evaluate("constructor", value)).toBeNull();
  expect(evaluate("a.toString", value)).toBeNull();
  expect(evaluate('"__proto__".x', value)).toBe(1);
  expect(stringifyJson(evaluate('{"__proto__": a}', value))).toBe('{"__proto__":{}}');
});

test("an expression that makes its result grow without bound is ended, and soon", () => {
  const doubling = Array.from({ length: 60 }, () => "[@, @]").join(" | ");
  const text = Array.from({ length: 30 }, () => "[@, @][]").join(" | ");
  const many: JsonValue = Array.from({ length: 2_000 }, (_, i) => i);
  const start = process.cpuUsage();
  for (const [expression, value] of [
    [doubling, many],
    [text, many],
    [`${doubling} | to_string(@)`, many],
    [`${doubling} | length(to_string(@))`, 1],
    ["[*].[$all, @] | @".replace("$all", "sort(`[3, 2, 1]`)"), Array.from({ length: 200_000 }, () => 1)],
    ["map(&map(&@, `[1, 2, 3, 4, 5, 6, 7, 8]`), [@, @, @][][][])", Array.from({ length: 90_000 }, () => [1])],
  ] satisfies [string, JsonValue][]) {
    const error = thrown(() => evaluate(expression, value));
    expect(error, expression.slice(0, 60)).toBeInstanceOf(SelectFault);
    expect(error).toMatchObject({ kind: "too-much", message: `more than ${MAX_STEPS} steps` });
  }
  const { user } = process.cpuUsage(start);
  expect(user / 1000).toBeLessThan(3_000);
});

test("what cannot be parsed is told with its place, and so is what only some implementations know", () => {
  const problems: [string, RegExp][] = [
    ["orders[0", /^no JMESPath from character 9 on$/],
    ["orders[*].name name", /^no JMESPath from character 16 on$/],
    ["orders..id", /^no JMESPath from character 8 on$/],
    ["orders[?id == 'open]", /^a quote at character 15 that does not end$/],
    ["'open", /^a quote at character 1 /],
    ["orders # all", /^no JMESPath from character 8 on$/],
    ["a + b", /^arithmetic/],
    ["let $x = a in $x", /^`let`/],
    ["$.orders", /^`\$`/],
    ["upper(name)", /^`upper`, which is no function of JMESPath$/],
    ["length(a, b)", /^`length` with 2 arguments$/],
    ["[?id == `9007199254740993`]", /^a number beyond 2\^53/],
  ];
  for (const [text, problem] of problems) {
    const parsed = parseSelect(text);
    expect(parsed.ok ? "no problem" : parsed.problem, text).toMatch(problem);
  }
  const { issues } = parseResultRules({ select: "orders[0" }, { delivery: "conclusive" });
  expect(issues).toEqual([
    { pointer: "/select", message: expect.stringMatching(/^`select` has no JMESPath from character 9 on: write /) },
  ]);
  const text = parseResultRules({ select: "a", format: "text" }, { delivery: "conclusive" });
  expect(text.issues).toEqual([{ pointer: "/select", message: expect.stringContaining("looks into JSON") }]);
});

test("a nest that is too deep for the parser is refused like anything else that it cannot parse", () => {
  expect(parseSelect("(".repeat(1_000))).toMatchObject({ ok: false });
  expect(parseSelect(`${"!".repeat(999)}a`).ok).toBe(true);
});

const ANSWER = { content: [], effect: "committed", upstreamCode: 200 } as const satisfies Partial<UpstreamResult>;

/** What a `select` makes of an answer. */
function selected(select: string, result: UpstreamResult): UpstreamResult {
  return createSelect("shop", parseResultRules({ select }, { delivery: "conclusive" }).rules)(result);
}

test("the result is what the expression picks, however deep it stands; what it does not find is null [S2-05]", () => {
  expect(selected("orders[*].id", { ...ANSWER, value: SHOP }).value).toEqual([3, 1, 2]);
  expect(selected("nowhere", { ...ANSWER, value: SHOP })).toMatchObject({ value: null });
  expect(selected("a", ANSWER)).toEqual(ANSWER);
});

test("an answer that does not fit the expression is a failure that says what was expected", () => {
  const misfit = selected("length(open)", { ...ANSWER, value: SHOP }).failure;
  expect(misfit).toMatchObject({
    reason: "FIELD_MISSING",
    message: "shop: the answer does not fit `select`: `length` takes a list as its argument 1, got boolean",
  });
  const text = selected("a", { ...ANSWER, content: [{ type: "text", text: "no JSON" }] }).failure;
  expect(text).toMatchObject({ reason: "FIELD_MISSING", message: expect.stringContaining("it is no JSON") });
  const long = selected("[@, @] | ".repeat(60) + "@", { ...ANSWER, value: SHOP });
  expect(long.failure).toMatchObject({ reason: "RESULT_TOO_LONG", message: expect.stringContaining("500000 steps") });
  expect(long.value).toBeUndefined();
});
