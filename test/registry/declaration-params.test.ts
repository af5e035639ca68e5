import { expect, test } from "vitest";
import { isJsonObject, type JsonObject, stringifyJson } from "../../src/core/json.ts";
import { declare, notes, ORDER_STATUS, problems, withParams } from "./declaration-fixture.ts";

function schemas(...params: readonly string[]): JsonObject {
  const properties = declare(withParams(...params)).tool.inputSchema["properties"];
  if (!isJsonObject(properties ?? null)) throw new Error("no properties");
  return properties as JsonObject;
}

function withInputSchema(schema: string): string {
  return `name: t\ndescription: Find one order by its number\ntype: http\nmethod: POST\nendpoint: http://127.0.0.1/x\ninput_schema:\n${schema.replace(/^/gm, "  ")}\n`;
}

test("the short form makes a JSON Schema that refuses what is not declared [S2-23] [S2-29]", () => {
  const { inputSchema } = declare(
    withParams(
      "{name: s, type: string, required: true, description: text, minLength: 1, maxLength: 9, pattern: '^a', format: uuid, examples: [abc]}",
      "{name: i, type: integer, minimum: 1, maximum: 5, default: 2}",
      "{name: n, type: number, enum: [0.5, 1]}",
      "{name: b, type: boolean, default: false, required: false}",
      "{name: l, type: array, items: {type: string}, default: []}",
      "{name: o, type: object, properties: {k: {type: integer}}}",
    ),
  ).tool;
  expect(inputSchema).toEqual({
    type: "object",
    properties: {
      s: {
        type: "string",
        description: "text",
        minLength: 1,
        maxLength: 9,
        pattern: "^a",
        format: "uuid",
        examples: ["abc"],
      },
      i: { type: "integer", minimum: 1, maximum: 5, default: 2 },
      n: { type: "number", enum: [0.5, 1] },
      b: { type: "boolean", default: false },
      l: { type: "array", items: { type: "string" }, default: [] },
      o: { type: "object", properties: { k: { type: "integer" } } },
    },
    required: ["s"],
    additionalProperties: false,
  });
});

test("a default of false is a default, and a boolean [S2-24] [S2-25]", () => {
  expect(schemas("{name: include_history, type: boolean, default: false}")["include_history"]).toEqual({
    type: "boolean",
    default: false,
  });
  expect(problems(withParams("{name: f, type: boolean, default: no}"))).toEqual([
    '7:30 `params[0].default`: expected true or false, got text "no": write false',
  ]);
});

test("without params, and with none, a tool takes no arguments", () => {
  const none = { type: "object", properties: {}, additionalProperties: false };
  expect(declare(withParams().replace("params:\n", "")).tool.inputSchema).toEqual(none);
  expect(declare(withParams().replace("params:\n", "params: []\n")).tool.inputSchema).toEqual(none);
});

test("1e3 and 2e3 stay text where the parameter is a string [Y-D02]", () => {
  const text = `${withParams("{name: batch, type: string, enum: [1e3, 2e3], default: 1e3}")}request_body: {batch: $batch}\n`;
  expect(declare(text).tool.inputSchema["properties"]).toEqual({
    batch: { type: "string", enum: ["1e3", "2e3"], default: "1e3" },
  });
});

test("leading zeros and 0o prefixes stay text, and text in quotes is not doubled [Y-D03]", () => {
  const read = schemas(
    "{name: branch_code, type: string, default: 007}",
    "{name: order, type: string, default: SO20241001}",
    "{name: mode, type: string, enum: [0o755, 0x1F, 1_000]}",
  );
  expect(read).toEqual({
    branch_code: { type: "string", default: "007" },
    order: { type: "string", default: "SO20241001" },
    mode: { type: "string", enum: ["0o755", "0x1F", "1_000"] },
  });
});

test("yes, no, on, dates, times and versions stay text", () => {
  const words = [
    "yes",
    "no",
    "on",
    "off",
    "true",
    "False",
    "2024-01-01",
    "2024-01-01T10:00:00Z",
    "10:30",
    "1.10",
    "+5",
    ".5",
    "1e999",
    "0b1",
  ];
  expect(schemas(`{name: w, type: string, enum: [${words.join(", ")}], examples: [${words.join(", ")}]}`)["w"]).toEqual(
    { type: "string", enum: words, examples: words },
  );
});

test("64-bit integers keep their digits in defaults and limits [Y-D04]", () => {
  const text = `${withParams("{name: seller_id, type: integer, default: 871234567890123457, maximum: 9223372036854775807}")}request_body: {seller: $seller_id}\n`;
  expect(stringifyJson(declare(text).tool.inputSchema["properties"] ?? null)).toBe(
    '{"seller_id":{"type":"integer","default":871234567890123457,"maximum":9223372036854775807}}',
  );
  expect(
    problems(withParams("{name: n, type: integer, default: 9223372036854775808, maximum: 9223372036854775807}")),
  ).toEqual(["7:30 `params[0].default`: expected at most 9223372036854775807, got 9223372036854775808"]);
});

test("entries of arrays and objects are read by their own types", () => {
  expect(schemas("{name: l, type: array, items: {type: string, enum: [007, 008]}, default: [007]}")["l"]).toEqual({
    type: "array",
    items: { type: "string", enum: ["007", "008"] },
    default: ["007"],
  });
  expect(
    schemas(
      "{name: o, type: object, properties: {k: {type: string, default: 1e3}, n: {type: number}}, default: {k: 1e3, n: 1e3}}",
    )["o"],
  ).toEqual({
    type: "object",
    properties: { k: { type: "string", default: "1e3" }, n: { type: "number" } },
    default: { k: "1e3", n: 1_000 },
  });
});

test("a default, an enum entry and an example that do not fit are refused with what was expected", () => {
  expect(
    problems(
      withParams(
        "{name: a, type: integer, default: soon}",
        "{name: b, type: string, enum: [damaged, late], default: lost_it}",
        "{name: c, type: integer, enum: [1, two]}",
        "{name: d, type: string, maxLength: 2, examples: [abc]}",
        "{name: e, type: integer, minimum: 5, maximum: 1}",
        "{name: f, type: array, items: {type: integer}, default: [1, x]}",
        "{name: g, type: string, default: }",
        "{name: h, type: object, properties: {k: {type: integer}}, default: {k: x}}",
      ),
    ),
  ).toEqual([
    '7:30 `params[0].default`: expected a whole number, got text "soon"',
    '8:52 `params[1].default`: expected one of "damaged", "late"; got text "lost_it"',
    '9:40 `params[2].enum[1]`: expected a whole number, got text "two"',
    "10:54 `params[3].examples[0]`: expected at most 2 characters, got 3",
    "11:30 `params[4].minimum`: 5 is over `maximum` 1",
    '12:52 `params[5].default`: entry 2: expected a whole number, got text "x"',
    "13:29 `params[6].default`: expected text, got nothing",
    '14:63 `params[7].default`: key `k`: expected a whole number, got text "x"',
  ]);
});

test("a parameter that may be null says so", () => {
  expect(schemas("{name: a, type: string, nullable: true, enum: [x], default: null}")["a"]).toEqual({
    type: ["string", "null"],
    enum: ["x", null],
    default: null,
  });
});

test("a parameter declared twice is refused with both lines", () => {
  expect(
    problems(withParams("{name: a, type: string}", "{name: b, type: string}", "{name: a, type: integer}")),
  ).toEqual(["9:5 parameter `a` is declared twice, on lines 7 and 9: keep one"]);
});

test("a key without effect on the parameter's type is refused", () => {
  expect(problems(withParams("{name: a, type: string, minimum: 1}", "{name: b, type: integer, pattern: x}"))).toEqual([
    "7:29 parameter `a`: `minimum` has no effect on type string: remove it",
    "8:30 parameter `b`: `pattern` has no effect on type integer: remove it",
  ]);
  expect(problems(withParams("{name: a, type: integer, format: int64}"))).toEqual([]);
});

test("wrong entries of params are told one by one", () => {
  expect(
    problems(
      withParams(
        "{name: a}",
        "{type: string}",
        "name",
        "{name: b, type: strng}",
        "{name: c, type: string, requird: true}",
        "{name: '', type: string}",
      ),
    ),
  ).toEqual([
    '7:5 key `type` is missing in `params[0]`; allowed: "string", "integer", "number", "boolean", "array", "object"',
    "8:5 key `name` is missing in `params[1]`",
    '9:5 `params[2]`: expected a mapping, got text "name"',
    '10:15 `params[3].type`: expected one of "string", "integer", "number", "boolean", "array", "object"; got text "strng"; did you mean "string"?',
    '11:29 unknown key `requird` in `params[4]`; did you mean "required"?',
    "12:6 `params[5].name`: expected text, got empty text",
  ]);
  expect(problems(`${withParams().trimEnd()} {a: string}\n`)).toEqual(["6:1 `params`: expected a list, got a mapping"]);
});

test("a pattern that cannot be used is refused at its parameter", () => {
  expect(problems(withParams("{name: a, type: string}", "{name: b, type: string, pattern: '('}"))).toEqual([
    expect.stringMatching(/^8:5 parameter `b`: .*pattern/),
  ]);
});

test("reserved names are names like any other", () => {
  const { inputSchema } = declare(
    withParams("{name: __proto__, type: string, required: true}", "{name: constructor, type: string, default: x}"),
  ).tool;
  expect(Object.keys(inputSchema["properties"] as JsonObject)).toEqual(["__proto__", "constructor"]);
  expect(inputSchema["required"]).toEqual(["__proto__"]);
  expect(({} as Record<string, unknown>)["type"]).toBeUndefined();
});

test("a default that no call can use is noted", () => {
  expect(notes(withParams("{name: a, type: string, required: true, default: x}"))).toEqual([
    "7:45 parameter `a` is required, so its `default` is never used",
  ]);
});

test("input_schema takes a whole JSON Schema, and its scalars are read by their types too [Y-D02] [Y-D03]", () => {
  const text = withInputSchema(`type: object
required: [branch]
properties:
  branch: {type: string, default: 007, enum: [007, 1e3], examples: [1e3]}
  code: {type: string, const: 0o755}
  when: {anyOf: [{type: string, default: 2024-01-01}, {type: null}]}
  big: {type: integer, maximum: 9223372036854775807}
  list: {type: array, items: {type: string, pattern: 123}, prefixItems: [{const: 1e3, type: string}]}
  ref: {$ref: '#/$defs/code', default: 0x1F}
  any: {default: 1e3}
$defs:
  code: {type: string}
additionalProperties: false`);
  const { inputSchema } = declare(text).tool;
  expect(inputSchema).toEqual({
    type: "object",
    required: ["branch"],
    properties: {
      branch: { type: "string", default: "007", enum: ["007", "1e3"], examples: ["1e3"] },
      code: { type: "string", const: "0o755" },
      when: { anyOf: [{ type: "string", default: "2024-01-01" }, { type: "null" }] },
      big: { type: "integer", maximum: 9223372036854775807n },
      list: {
        type: "array",
        items: { type: "string", pattern: "123" },
        prefixItems: [{ const: "1e3", type: "string" }],
      },
      ref: { $ref: "#/$defs/code", default: "0x1F" },
      any: { default: 1_000 },
    },
    $defs: { code: { type: "string" } },
    additionalProperties: false,
  });
});

test("input_schema and params together are refused", () => {
  expect(problems(`${withInputSchema("type: object")}params: []\n`)).toEqual([
    "6:1 `params` and `input_schema` are both set: keep one",
  ]);
});

test("the dialects are those from draft-04 on; others are refused by name", () => {
  for (const dialect of [
    ...["04", "06", "07"].map((draft) => `http://json-schema.org/draft-${draft}/schema#`),
    ...["2019-09", "2020-12"].map((draft) => `https://json-schema.org/draft/${draft}/schema`),
  ]) {
    expect(declare(withInputSchema(`$schema: ${dialect}\ntype: object`)).tool.inputSchema["$schema"]).toBe(dialect);
  }
  expect(problems(withInputSchema("$schema: http://json-schema.org/draft-03/schema#\ntype: object"))).toEqual([
    '7:3 `input_schema`: expected JSON Schema draft-04, draft-06, draft-07, 2019-09 or 2020-12 in `$schema`, got text "http://json-schema.org/draft-03/schema#"',
  ]);
  expect(problems(`${withInputSchema("type: object")}output_schema: {$schema: 'urn:x'}\n`)).toEqual([
    expect.stringMatching(
      /^8:17 `output_schema`: expected JSON Schema draft-04, draft-06, draft-07, 2019-09 or 2020-12/,
    ),
  ]);
});

test("arguments are a mapping: type object is filled in, another type is refused", () => {
  expect(declare(withInputSchema("properties: {a: {type: string}}")).tool.inputSchema).toEqual({
    type: "object",
    properties: { a: { type: "string" } },
  });
  expect(problems(withInputSchema("type: array"))).toEqual([
    '6:1 `input_schema`: arguments are always a mapping: write `type: object`, got text "array"',
  ]);
});

test("a schema that is none, or that holds values that do not fit it, is refused", () => {
  expect(problems(withInputSchema("type: object\nproperties: {a: {type: strng}}"))).toEqual([
    expect.stringMatching(/^6:1 `input_schema`: .*\/properties\/a\/type/),
    ...problems(withInputSchema("type: object\nproperties: {a: {type: strng}}")).slice(1),
  ]);
  expect(
    problems(
      withInputSchema("type: object\nproperties: {a: {type: integer, default: x}, b: {type: string, default: null}}"),
    ),
  ).toEqual(['8:35 `input_schema.properties.a.default`: expected a whole number, got text "x"']);
  expect(problems(withInputSchema("type: object\nproperties: {a: {$ref: 'https://example.com/a.json'}}"))).toEqual([
    expect.stringMatching(/^6:1 `input_schema`: .*not in the schema/),
  ]);
});

test("foreign keywords and formats load, and mean nothing", () => {
  expect(
    problems(
      withInputSchema(
        "type: object\nproperties: {a: {type: integer, format: int64, x-order: 1, nullable: true, example: 3}}",
      ),
    ),
  ).toEqual([]);
});

test("output_schema is taken over", () => {
  const { outputSchema } = declare(
    `${ORDER_STATUS}output_schema:\n  type: object\n  properties: {status: {type: string, enum: [007]}}\n`,
  ).tool;
  expect(outputSchema).toEqual({ type: "object", properties: { status: { type: "string", enum: ["007"] } } });
});
