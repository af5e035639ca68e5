import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { type JsonObject, type JsonValue, parseJson, stringifyJson } from "../../src/core/json.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { cpuMs } from "../config/cpu-time.ts";

/** Processor time of what would take many seconds, or years, without a bound. */
const AT_ONCE_MS = 2_500;

const checker = createSchemaChecker({ maxCompiled: 50 });

/** One that pauses wherever it can. */
const pausing = createSchemaChecker({ maxCompiled: 50, slice: { ms: 0, steps: 1 } });

/** `ok` with the value as JSON text, or each violation in a line. */
function outcome(schema: JsonObject, args: JsonObject | string): string[] {
  const given = typeof args === "string" ? (parseJson(args) as JsonObject) : args;
  const got = checker.check(schema, given);
  // The same, in the same order, wherever it pauses. What is stopped for the time it takes has no order.
  if (!isTooLarge(got) && stringifyJson(given).length < 10_000) expect(pausing.check(schema, given)).toEqual(got);
  if (got.ok) return [`ok ${stringifyJson(got.value)}`];
  return got.violations.map(({ field, reason, description }) => `${reason} ${field}: ${description}`);
}

function isTooLarge(got: ReturnType<typeof checker.check>): boolean {
  return !got.ok && got.violations.some(({ reason }) => reason === "TOO_LARGE");
}

function object(properties: JsonObject, more: JsonObject = {}): JsonObject {
  return { type: "object", properties, additionalProperties: false, ...more };
}

test("the four basic types are checked strictly, and what fits keeps its type [S2-25] [S2-29]", () => {
  const schema = object({
    s: { type: "string" },
    i: { type: "integer" },
    b: { type: "boolean" },
    e: { enum: ["a", "b"] },
  });
  expect(outcome(schema, { s: "5", i: 5, b: false, e: "a" })).toEqual(['ok {"s":"5","i":5,"b":false,"e":"a"}']);
  expect(outcome(schema, { s: 5, i: "5", b: "false", e: "c" })).toEqual([
    "WRONG_TYPE /s: expected string, got integer 5",
    'WRONG_TYPE /i: expected integer, got string "5"',
    'WRONG_TYPE /b: expected boolean, got string "false"',
    'NOT_IN_ENUM /e: expected one of "a", "b", got string "c"',
  ]);
  expect(outcome(schema, { i: 1.5 })).toEqual(["WRONG_TYPE /i: expected integer, got number 1.5"]);
  expect(outcome(schema, { i: 2.0 })).toEqual(['ok {"i":2}']);
});

test("JSON text in place of arrays, numbers and objects is refused at each place [A-D01]", () => {
  const schema = object({
    tags: { type: "array", items: { type: "string" } },
    n: { type: "integer" },
    opts: { type: "object" },
    s: { type: "string" },
  });
  expect(outcome(schema, { tags: '["a"]', n: "5", opts: '{"k":1}', s: '["a"]' })).toEqual([
    'WRONG_TYPE /tags: expected array, got string "[\\"a\\"]"',
    'WRONG_TYPE /n: expected integer, got string "5"',
    'WRONG_TYPE /opts: expected object, got string "{\\"k\\":1}"',
  ]);
  expect(outcome(schema, { n: "5x" })).toEqual(['WRONG_TYPE /n: expected integer, got string "5x"']);
});

test("wrong name, missing required and text for a number are told apart [S2-07] [S2-94]", () => {
  const schema = object({ order_id: { type: "string" }, count: { type: "integer" } }, { required: ["order_id"] });
  expect(outcome(schema, { orderid: "x", count: "2" })).toEqual([
    "MISSING /order_id: required parameter missing; ask the user for it, do not guess",
    'UNKNOWN_PARAMETER /orderid: unknown parameter; did you mean "order_id"?',
    'WRONG_TYPE /count: expected integer, got string "2"',
  ]);
  expect(outcome(schema, { order_id: "x", zzzzzzzz: 1 })).toEqual([
    "UNKNOWN_PARAMETER /zzzzzzzz: unknown parameter; known are order_id, count",
  ]);
});

test("null for an optional parameter counts as absent unless the schema allows null [A-D02]", () => {
  const schema = object(
    {
      limit: { type: "integer" },
      size: { type: "integer", default: 20 },
      note: { type: ["string", "null"], default: "x" },
      old: { type: "string", nullable: true },
      ref: { $ref: "#/$defs/text" },
      any: {},
      must: { type: "string" },
      deep: { type: "object", properties: { a: { type: "string" }, b: { type: "integer", default: 1 } } },
    },
    { required: ["must"], $defs: { text: { type: "string" } } },
  );
  const nulls = { limit: null, size: null, note: null, old: null, ref: null, any: null, must: "m" };
  expect(outcome(schema, { ...nulls, deep: { a: null, b: null } })).toEqual([
    'ok {"note":null,"old":null,"any":null,"must":"m","deep":{"b":1},"size":20}',
  ]);
  expect(outcome(schema, { must: null })).toEqual([
    "MISSING /must: required parameter missing; ask the user for it, do not guess",
  ]);
  expect(outcome(object({ l: { type: "array", items: { type: "string" } } }), { l: [null] })).toEqual([
    "WRONG_TYPE /l/0: expected string, got null",
  ]);
});

test("a default of null is used where the schema allows null and left out where not", () => {
  expect(outcome(object({ a: { type: ["string", "null"], default: null } }), {})).toEqual(['ok {"a":null}']);
  expect(outcome(object({ a: { type: "string", default: null } }), {})).toEqual(["ok {}"]);
});

test("defaults are filled in at every depth without touching the caller's objects [S2-24]", () => {
  const schema = object({
    all: { type: "boolean", default: false },
    big: { type: "integer", default: 9223372036854775807n },
    list: { type: "array", items: { type: "object", properties: { n: { type: "integer", default: 1 } } } },
    cfg: { $ref: "#/$defs/cfg" },
    alt: { anyOf: [{ type: "object", properties: { x: { default: 1 } } }] },
  });
  const withDefs = {
    ...schema,
    $defs: { cfg: { type: "object", properties: { mode: { type: "string", default: "fast" } } } },
  };
  const args = { list: [{}, { n: 2 }], cfg: {}, alt: {} };
  const before = structuredClone(args);
  expect(outcome(withDefs, args)).toEqual([
    'ok {"list":[{"n":1},{"n":2}],"cfg":{"mode":"fast"},"alt":{},"all":false,"big":9223372036854775807}',
  ]);
  expect(args).toEqual(before);
});

test("a default object is a fresh one for each call", () => {
  const schema = object({ o: { type: "object", default: { a: [1] } } });
  const [first, second] = [checker.check(schema, {}), checker.check(schema, {})];
  if (!first.ok || !second.ok) throw new Error("refused");
  expect(first.value["o"]).toEqual({ a: [1] });
  expect(first.value["o"]).not.toBe(second.value["o"]);
});

test("64-bit integers keep all their digits and are compared by all of them [A-D03]", () => {
  const schema = object({
    id: { type: "integer", minimum: 1, maximum: 9223372036854775807n },
    text: { type: "string" },
    pick: { enum: [9007199254740993n, { id: 9007199254740995n }] },
    even: { type: "integer", multipleOf: 2 },
    ids: { type: "array", items: { type: "integer" }, uniqueItems: true },
  });
  const fits = '{"id":871234567890123457,"text":"871234567890123457","ids":[871234567890123457,871234567890123458]}';
  expect(outcome(schema, fits)).toEqual([`ok ${fits}`]);
  expect(outcome(schema, '{"id":9223372036854775808}')).toEqual([
    "OUT_OF_RANGE /id: expected at most 9223372036854775807, got integer 9223372036854775808",
  ]);
  expect(outcome(schema, '{"pick":9007199254740992}')[0]).toMatch(/^NOT_IN_ENUM .*got integer 9007199254740992$/);
  expect(outcome(schema, '{"pick":{"id":9007199254740995}}')).toEqual(['ok {"pick":{"id":9007199254740995}}']);
  expect(outcome(schema, '{"pick":{"id":9007199254740996}}')[0]).toMatch(/^NOT_IN_ENUM/);
  expect(outcome(schema, '{"even":9007199254740993}')[0]).toMatch(/^OUT_OF_RANGE .*multiple of 2/);
  expect(outcome(schema, '{"even":9007199254740994}')).toEqual(['ok {"even":9007199254740994}']);
  expect(outcome(schema, '{"ids":[871234567890123457,871234567890123457]}')[0]).toMatch(/^INVALID .*differ/);
  expect(outcome(schema, '{"text":871234567890123457}')).toEqual([
    "WRONG_TYPE /text: expected string, got integer 871234567890123457",
  ]);
});

test("keywords and formats nobody knows are ignored, the rest counts [A-D06]", () => {
  const schema = object({
    a: { type: "integer", format: "int64", "x-order": 1 },
    b: { type: "string", format: "repo.nwo", example: 3, $comment: "c", id: "x" },
    c: { type: "string", nullable: true, discriminator: { propertyName: "k" } },
    d: { type: "integer", format: "uint", deprecated: true },
    e: { nullable: true },
  });
  expect(checker.problem(schema)).toBeUndefined();
  expect(outcome(schema, { a: 1, b: "x", c: null, d: 2, e: 1 })).toEqual(['ok {"a":1,"b":"x","c":null,"d":2,"e":1}']);
  expect(outcome(schema, { a: "1", d: "x" })).toHaveLength(2);
});

test("an asynchronous schema is an ordinary one", () => {
  expect(outcome({ $async: true, properties: { a: { type: "string" } } }, { a: 1 })).toHaveLength(1);
});

test("two schemas with one $id, and a changed one, do not get in each other's way [A-D07]", () => {
  const a = object({ x: { type: "string" } }, { $id: "urn:args" });
  const b = object({ y: { type: "integer" } }, { $id: "urn:args" });
  const changed = object({ x: { type: "integer" } }, { $id: "urn:args" });
  expect(outcome(a, { x: "1" })).toEqual(['ok {"x":"1"}']);
  expect(outcome(b, { y: 1 })).toEqual(['ok {"y":1}']);
  expect(outcome(changed, { x: 1 })).toEqual(['ok {"x":1}']);
  expect(outcome(a, { x: 1 })).toHaveLength(1);
});

test("reading and compiling the same schemas again and again does not grow the heap [A-D08]", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const small = createSchemaChecker({ maxCompiled: 5 });
  const round = (): void => {
    for (let i = 0; i < 20; i++) {
      const schema = object({ [`p${i}`]: { type: "string", pattern: `^a${i}+$` } }, { $id: `urn:tool:${i}` });
      small.problem(schema);
      small.check(schema, { [`p${i}`]: `a${i}` });
    }
  };
  const heapAfter = (rounds: number): number => {
    for (let i = 0; i < rounds; i++) round();
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const early = heapAfter(10);
  expect(heapAfter(30)).toBeLessThan(early * 1.2);
}, 180_000);

test("names of prototypes are like any other name [X-D02]", () => {
  const args = '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}},"q":"a"}';
  expect(outcome(object({ q: { type: "string" } }), args).map((line) => line.split(";")[0])).toEqual([
    "UNKNOWN_PARAMETER /__proto__: unknown parameter",
    "UNKNOWN_PARAMETER /constructor: unknown parameter",
  ]);
  expect(outcome({ type: "object" }, args)).toEqual([`ok ${args}`]);
  expect(Object.hasOwn({}, "admin")).toBe(false);
  expect(({} as { admin?: boolean }).admin).toBeUndefined();
  const named = object({ constructor: { type: "string", default: "d" }, toString: { type: "integer" } });
  expect(outcome(named, {})).toEqual(['ok {"constructor":"d"}']);
  expect(outcome(object({}, { required: ["constructor"] }), {})[0]).toMatch(/^MISSING \/constructor/);
});

test("ranges, lengths, patterns and formats have lines of their own", () => {
  const schema = object({
    min: { type: "integer", minimum: 1 },
    max: { exclusiveMaximum: 10 },
    cent: { multipleOf: 0.01 },
    name: { type: "string", minLength: 2, maxLength: 3 },
    list: { type: "array", minItems: 1, maxItems: 2, uniqueItems: true },
    map: { type: "object", maxProperties: 1 },
    code: { type: "string", pattern: "^[A-Z]{2}\\d+$" },
    when: { type: "string", format: "date-time" },
    fix: { const: 7 },
  });
  const wrong = {
    min: 0,
    max: 10,
    cent: 1.005,
    name: "😀",
    list: [1, 1, 1],
    map: { a: 1, b: 2 },
    code: "x",
    when: "y",
  };
  expect(outcome(schema, { ...wrong, fix: 8 })).toEqual([
    "OUT_OF_RANGE /min: expected at least 1, got integer 0",
    "OUT_OF_RANGE /max: expected less than 10, got integer 10",
    "OUT_OF_RANGE /cent: expected a multiple of 0.01, got number 1.005",
    "OUT_OF_RANGE /name: expected at least 2 characters, got 1",
    "OUT_OF_RANGE /list: expected at most 2 items, got 3",
    "INVALID /list: expected items that all differ",
    "OUT_OF_RANGE /map: expected at most 1 keys, got 2",
    'PATTERN_MISMATCH /code: expected text matching "^[A-Z]{2}\\d+$", got string "x"',
    'FORMAT /when: expected a date-time such as 2026-01-31T08:30:00Z, got string "y"',
    "NOT_IN_ENUM /fix: expected 7, got integer 8",
  ]);
  expect(outcome(schema, { cent: 19.99 })).toEqual(['ok {"cent":19.99}']);
});

test("of alternatives the nearest speaks, or all that come equally near", () => {
  const kind = (name: string, side: string): JsonObject => ({
    type: "object",
    properties: { kind: { const: name }, [side]: { type: "number" } },
    required: ["kind", side],
  });
  const schema = object(
    {
      id: { anyOf: [{ type: "string" }, { type: "integer" }] },
      shape: { oneOf: [kind("circle", "radius"), kind("square", "side")] },
      node: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
    },
    { $defs: { node: { type: "object", properties: { v: { type: "integer" } }, required: ["v"] } } },
  );
  expect(outcome(schema, { id: {} })).toEqual(["WRONG_TYPE /id: expected string or integer, got object of 0 keys"]);
  expect(outcome(schema, { shape: { kind: "square", side: "x" } })).toEqual([
    'WRONG_TYPE /shape/side: expected number, got string "x"',
  ]);
  expect(outcome(schema, { node: { v: "x" } })).toEqual(['WRONG_TYPE /node/v: expected integer, got string "x"']);
  expect(outcome(schema, { node: 3 })).toEqual(["WRONG_TYPE /node: expected object or null, got integer 3"]);
  expect(outcome({ anyOf: [{ required: ["a"] }, { required: ["b"] }] }, {})).toEqual([
    "MISSING : /a: required parameter missing; ask the user for it, do not guess; or /b: required parameter missing; ask the user for it, do not guess",
  ]);
  expect(outcome({ properties: { a: { oneOf: [{ type: "string" }, { minLength: 1 }] } } }, { a: "x" })).toEqual([
    "INVALID /a: fits more than one of the forms allowed here",
  ]);
});

test("conditions, dependencies, names and tuples of both dialects are explained", () => {
  const schema: JsonObject = {
    properties: { card: {}, tuple: { prefixItems: [{ type: "string" }], items: false }, off: false },
    dependentRequired: { card: ["zip"] },
    ...(parseJson('{"if":{"required":["card"]},"then":{"required":["name"]}}') as JsonObject),
    propertyNames: { maxLength: 5 },
    unevaluatedProperties: { type: "integer" },
  };
  expect(outcome(schema, { card: 1, tuple: ["a", "b"], off: 1, much_too_long: 1 })).toEqual([
    "MISSING /name: required parameter missing; ask the user for it, do not guess",
    'MISSING /zip: required together with "card"; ask the user for it, do not guess',
    'INVALID : name "much_too_long": expected at most 5 characters, got 13',
    "OUT_OF_RANGE /tuple: expected at most 1 items, got 2",
    "INVALID /off: no value is allowed here",
  ]);
  const seven: JsonObject = {
    $schema: "http://json-schema.org/draft-07/schema#",
    properties: { pair: { items: [{ type: "string" }, { type: "integer" }], additionalItems: false } },
    dependencies: { pair: ["x"] },
  };
  expect(outcome(seven, { pair: [1, 2, 3] }).map((line) => line.split(" ")[0])).toEqual([
    "MISSING",
    "OUT_OF_RANGE",
    "WRONG_TYPE",
  ]);
});

test("references to any part of the schema are followed, in circles too", () => {
  const schema = object(
    {
      tree: { $ref: "#/components/schemas/Tree" },
      named: { $ref: "#here" },
      self: { $ref: "#" },
      same: { $ref: "urn:me#/properties/named/type" },
    },
    {
      $id: "urn:me",
      components: {
        schemas: { Tree: { type: "object", properties: { kids: { items: { $ref: "#/components/schemas/Tree" } } } } },
      },
      $defs: { h: { $anchor: "here", type: "integer" } },
    },
  );
  expect(checker.problem(schema)).toMatch(/"urn:me#\/properties\/named\/type" is not in the schema/);
  const fine = { ...schema, properties: { ...(schema["properties"] as JsonObject), same: { $ref: "urn:me#here" } } };
  expect(checker.problem(fine)).toBeUndefined();
  expect(outcome(fine, { tree: { kids: [{ kids: [] }, { kids: ["x"] }] } })).toEqual([
    'WRONG_TYPE /tree/kids/1/kids/0: expected object, got string "x"',
  ]);
  expect(outcome(fine, { named: "x", same: 1, self: { named: 2 } })).toEqual([
    'WRONG_TYPE /named: expected integer, got string "x"',
  ]);
  expect(outcome(fine, { self: { self: { other: 1 } } })[0]).toMatch(/^UNKNOWN_PARAMETER \/self\/self\/other/);
});

test("an inner schema with an $id of its own is a document of its own", () => {
  const inner = { $id: "urn:inner", $ref: "#/$defs/t", $defs: { t: { type: "integer" } } };
  const schema = object({ a: inner }, { $defs: { t: { type: "string" } } });
  expect(outcome(schema, { a: 1 })).toEqual(['ok {"a":1}']);
});

test("an anchor of draft-07 and a dynamic reference of 2020-12 are followed", () => {
  const seven = object({ a: { $ref: "#n" } }, { definitions: { x: { $id: "#n", type: "integer" } } });
  expect(outcome({ ...seven, $schema: "http://json-schema.org/draft-07/schema" }, { a: "x" })).toHaveLength(1);
  const dynamic = object({ a: { $dynamicRef: "#n" } }, { $defs: { x: { $dynamicAnchor: "n", type: "integer" } } });
  expect(outcome(dynamic, { a: "x" })).toHaveLength(1);
  expect(outcome(dynamic, { a: 1 })).toEqual(['ok {"a":1}']);
});

const DRAFT_04 = { $schema: "http://json-schema.org/draft-04/schema#" };
const DRAFT_06 = { $schema: "http://json-schema.org/draft-06/schema#" };
const DRAFT_2019 = { $schema: "https://json-schema.org/draft/2019-09/schema" };

test("in draft-04 the exclusive limits are flags, `id` names a schema, and what came later means nothing", () => {
  const limits = object({ a: { minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: false } }, DRAFT_04);
  expect(outcome(limits, { a: 1 })).toEqual(["OUT_OF_RANGE /a: expected more than 1, got integer 1"]);
  expect(outcome(limits, { a: 3 })).toEqual(['ok {"a":3}']);
  const named = object({ a: { $ref: "#n" } }, { ...DRAFT_04, definitions: { x: { id: "#n", type: "integer" } } });
  expect(outcome(named, { a: "x" })).toHaveLength(1);
  const later = object({ a: { const: 1, if: { type: "string" }, else: false, contains: false } }, DRAFT_04);
  expect(outcome(later, { a: 2 })).toEqual(['ok {"a":2}']);
  expect(outcome(object({}, { ...DRAFT_04, required: [] }), {})).toEqual(["ok {}"]);
});

test("in draft-06 there is no `if`, and `const` counts", () => {
  const schema = object({ a: { const: 1 }, b: { if: false, else: false } }, DRAFT_06);
  expect(outcome(schema, { a: 2 })).toHaveLength(1);
  expect(outcome(schema, { b: 2 })).toEqual(['ok {"b":2}']);
});

test("in 2019-09 a list of `items` stands for the first ones, and a recursive reference leads to the schema itself", () => {
  const tuple = object({ a: { items: [{ type: "string" }], additionalItems: { type: "integer" } } }, DRAFT_2019);
  expect(outcome(tuple, { a: ["x", 1] })).toEqual(['ok {"a":["x",1]}']);
  expect(outcome(tuple, { a: [1] })).toEqual(["WRONG_TYPE /a/0: expected string, got integer 1"]);
  expect(outcome(tuple, { a: ["x", "y"] })).toEqual(['WRONG_TYPE /a/1: expected integer, got string "y"']);
  const more = { ...DRAFT_2019, unevaluatedProperties: false, dependentRequired: { own: ["name"] } };
  const tree = object({ name: { type: "string" }, own: { $recursiveRef: "#" } }, { ...more, $recursiveAnchor: true });
  expect(outcome(tree, { own: { own: { name: 7 } }, name: "x" })).toContain(
    "WRONG_TYPE /own/own/name: expected string, got integer 7",
  );
  expect(outcome(tree, { name: "x", other: 1 })[0]).toMatch(/^UNKNOWN_PARAMETER \/other/);
  expect(outcome(tree, { own: {} })[0]).toMatch(/^MISSING \/name/);
  // What stands beside it counts, too; here the judge of other tests errs.
  const beside = object({ own: { $recursiveRef: "#", required: ["name"] }, name: {} }, DRAFT_2019);
  expect(outcome(beside, { own: {} })[0]).toMatch(/^MISSING \/own\/name/);
  expect(outcome(beside, { own: { name: 1, own: {} } })[0]).toMatch(/^MISSING \/own\/own\/name/);
  expect(outcome(beside, { own: { name: 1 } })).toEqual(['ok {"own":{"name":1}}']);
});

test.each([
  [
    "two schemas with a name of their own",
    { a: { $id: "urn:a", properties: { b: { $recursiveRef: "#" } } } },
    /\$recursiveRef/,
  ],
  [
    "what its successor judges otherwise",
    { a: { contains: {}, unevaluatedItems: false } },
    /`contains` and `unevaluatedItems`/,
  ],
])("a schema of 2019-09 with %s is refused, since its meaning is in doubt", (_name, properties, why) => {
  expect(checker.problem(object(properties, DRAFT_2019))).toMatch(why);
});

test.each([
  ["a number for a flag", { a: { minimum: 1, exclusiveMinimum: 2 } }],
  ["a flag of nothing", { a: { exclusiveMinimum: true } }],
  ["a schema that is a word", { a: true }],
])("a schema of draft-04 with %s is none", (_name, properties) => {
  expect(checker.problem(object(properties, DRAFT_04))).toMatch(/^not a JSON Schema: \/properties\/a/);
});

const REFUSED: readonly (readonly [name: string, schema: JsonObject, problem: RegExp])[] = [
  [
    "another dialect",
    { $schema: "http://json-schema.org/draft-03/schema#" },
    /draft-03.*use draft-04, draft-06, draft-07, 2019-09 or 2020-12/,
  ],
  ["no name of a dialect", { $schema: 7 }, /"\$schema" 7 is not supported/],
  ["a type that is none", { properties: { a: { type: "strng" } } }, /\/properties\/a\/type .*boolean.*string/],
  ["draft-04 habits", { properties: { a: { required: true } } }, /\/properties\/a\/required must be array/],
  ["a reference to an address", { $ref: "https://example.com/s.json" }, /only references to its own parts/],
  ["a reference to a file", { properties: { a: { $ref: "other.json#/x" } } }, /\/properties\/a\/\$ref: "other.json/],
  ["a reference to nothing", { $ref: "#/$defs/none" }, /is not in the schema/],
  ["a reference to no schema", { $ref: "#/x", x: { anyOf: 5 } }, /not a JSON Schema: \/anyOf must be array/],
  ["a reference through a prototype", { $ref: "#/constructor" }, /is not in the schema/],
  ["a broken escape", { $ref: "#/%" }, /is not in the schema/],
  ["a reference to no index", { $ref: "#/allOf/", allOf: [{}] }, /is not in the schema/],
  [
    "look-ahead",
    { properties: { a: { pattern: "^(?=a)b" } } },
    /\/properties\/a\/pattern: pattern "\^\(\?=a\)b" is refused/,
  ],
  ["a back-reference", { patternProperties: { "(a)\\1": {} } }, /\/patternProperties\/\(a\)\\1: pattern/],
  ["no regular expression", { pattern: "[" }, /not a regular expression/],
];

for (const [name, schema, problem] of REFUSED) {
  test(`a schema with ${name} is refused by name`, () => {
    expect(checker.problem(schema)).toMatch(problem);
    expect(() => checker.check(schema, {})).toThrow(/input schema cannot be used/);
  });
}

function nested(levels: number, wrap: (inner: JsonObject) => JsonObject): JsonObject {
  let schema: JsonObject = { type: "string" };
  for (let i = 0; i < levels; i++) schema = wrap(schema);
  return schema;
}

function chain(length: number, link: (next: JsonObject) => JsonObject): JsonObject {
  const defs = Object.fromEntries(
    Array.from({ length }, (_, i) => [`d${i}`, link({ $ref: `#/$defs/d${i + 1}` })] as const),
  );
  return { $ref: "#/$defs/d0", $defs: { ...defs, [`d${length}`]: { type: "object" } } };
}

const wide: JsonObject = { required: ["x"], anyOf: Array.from({ length: 20 }, (_, i) => ({ minimum: i })) };

const TOO_COMPLEX: readonly (readonly [name: string, schema: JsonObject])[] = [
  ["that is itself twice", { allOf: [{ $ref: "#" }, { $ref: "#" }] }],
  ["in a circle of references", { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }],
  ["of 12 levels of 4 alternatives", nested(12, (inner) => ({ anyOf: [inner, inner, inner, inner] }))],
  ["of alternatives multiplied by reference", chain(12, (next) => ({ anyOf: [next, next, next, next] }))],
  ["of 2 MB", { description: "x".repeat(2_000_000) }],
  ["of 10,000 properties", { properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`p${i}`, {}])) }],
  ["nested 100 levels deep", nested(100, (inner) => ({ not: inner }))],
  ["of 3,000 references in a row", chain(3_000, (next) => next)],
  ["of 3,000 references one inside the other", chain(3_000, (next) => ({ properties: { a: next } }))],
  [
    "of references to schemas that hold each other",
    {
      properties: { all: { items: Array.from({ length: 60 }, (_, i) => ({ $ref: `#/not${"/not".repeat(i)}` })) } },
      ...nested(60, (inner) => ({ not: inner, ...wide })),
      $schema: "http://json-schema.org/draft-07/schema#",
    },
  ],
  ["of 300 patterns", { patternProperties: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`^p${i}`, {}])) }],
];

for (const [name, schema] of TOO_COMPLEX) {
  test(`a schema ${name} is too complex, which takes no time to see [X-D05]`, () => {
    const spent = cpuMs(() => expect(checker.problem(schema)).toMatch(/^schema too complex: /));
    expect(spent).toBeLessThan(AT_ONCE_MS);
  });
}

test("the longest chains that are accepted can be compiled and run", () => {
  for (const schema of [chain(140, (next) => ({ properties: { a: next } })), chain(90, (next) => next)]) {
    expect(checker.problem(schema)).toBeUndefined();
    expect(outcome(schema, { a: { a: 1 } }).length).toBeGreaterThan(0);
  }
});

test("a schema of 2,000 properties is accepted, compiled and run", () => {
  const schema = object(Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`p${i}`, { type: "string" }])));
  expect(checker.problem(schema)).toBeUndefined();
  expect(outcome(schema, { p0: "x", p1999: 1 })).toEqual(["WRONG_TYPE /p1999: expected string, got integer 1"]);
}, 180_000);

test("a pattern that would backtrack for years is matched at once [X-D04]", () => {
  const schema = object({ a: { type: "string", pattern: "^(a+)+$" } });
  outcome(schema, { a: "a" });
  const spent = cpuMs(() => expect(outcome(schema, { a: `${"a".repeat(31)}!` })[0]).toMatch(/^PATTERN_MISMATCH/));
  expect(spent).toBeLessThan(AT_ONCE_MS);
  expect(outcome(schema, { a: "a".repeat(31) })).toHaveLength(1);
});

test("text and patterns that take too long together are refused in time [X-D04]", () => {
  const schema = object({ a: { type: "string", pattern: "(a?){500}a{500}" } });
  outcome(schema, { a: "a" });
  const spent = cpuMs(() =>
    expect(outcome(schema, { a: "a".repeat(500) })).toEqual([
      "TOO_LARGE : the arguments take too long to check; send fewer or shorter values",
    ]),
  );
  expect(spent).toBeLessThan(AT_ONCE_MS);
});

test("long text is not run through the expression of a format [X-D04]", () => {
  const schema = object({ a: { type: "string", format: "url" }, b: { type: "string", format: "byte" } });
  outcome(schema, { a: "x" });
  const hostile = `http://${":".repeat(16_384)}`;
  const spent = cpuMs(() => expect(outcome(schema, { a: hostile })[0]).toMatch(/^FORMAT \/a: expected a text of/));
  expect(spent).toBeLessThan(AT_ONCE_MS);
  expect(outcome(schema, { b: "QUJD".repeat(100_000) })).toHaveLength(1);
});

test("alternatives that multiply with the depth of the arguments end in time [X-D05]", () => {
  const link = (own: string): JsonObject => ({
    type: "object",
    properties: { a: { $ref: "#/$defs/n" }, [own]: { type: "null" } },
    required: [own],
  });
  const schema: JsonObject = { $ref: "#/$defs/n", $defs: { n: { anyOf: [link("x"), link("y")] } } };
  expect(checker.problem(schema)).toBeUndefined();
  const deep = nested(100, (inner) => ({ a: inner }));
  outcome(schema, {});
  const spent = cpuMs(() => expect(outcome(schema, deep)[0]).toMatch(/^TOO_LARGE/));
  expect(spent).toBeLessThan(AT_ONCE_MS);
});

test("a long text is held against hundreds of lengths in no time [X-D05]", () => {
  const schema: JsonObject = {
    properties: { a: { anyOf: Array.from({ length: 900 }, (_, i) => ({ maxLength: i })) } },
  };
  outcome(schema, {});
  const text = "x".repeat(3_000_000);
  const spent = cpuMs(() => expect(outcome(schema, { a: text })[0]).toMatch(/^OUT_OF_RANGE/));
  expect(spent).toBeLessThan(AT_ONCE_MS);
});

test("arguments and references that lead too deep together are refused [X-D06]", () => {
  const links = Array.from({ length: 80 }, (_, i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }] as const);
  const last = { type: "object", properties: { a: { $ref: "#/$defs/d0" } } };
  const schema: JsonObject = { $ref: "#/$defs/d0", $defs: { ...Object.fromEntries(links), d80: last } };
  expect(checker.problem(schema)).toBeUndefined();
  expect(
    outcome(
      schema,
      nested(10, (inner) => ({ a: inner })),
    )[0],
  ).toMatch(/^ok/);
  expect(
    outcome(
      schema,
      nested(120, (inner) => ({ a: inner })),
    ),
  ).toEqual(["TOO_LARGE : nested too deep for the tool's schema"]);
});

test("what a condition in a condition has seen counts as not seen where it does not hold", () => {
  const named = { unevaluatedProperties: {}, propertyNames: { pattern: "^[ab]" } };
  const schema = {
    type: "object",
    if: { if: { $ref: "#/$defs/named" }, else: { multipleOf: 2 } },
    unevaluatedProperties: { items: { oneOf: [{ type: "array" }] } },
    $defs: { named },
  };
  // JSON Schema 2020-12, 7.7.1.2: a schema that fails keeps no annotations. `c` is not named so, thus `b` is not seen.
  expect(outcome(schema, { b: [{}], c: {} })).toEqual(["WRONG_TYPE /b/0: expected array, got object of 0 keys"]);
  expect(outcome(schema, { b: [[]], c: {} })).toEqual(['ok {"b":[[]],"c":{}}']);
  expect(outcome(schema, { b: [{}], a: {} })).toEqual(['ok {"b":[{}],"a":{}}']);
});

test("of a list with `contains`, `unevaluatedItems` is for the items that it does not find", () => {
  const schema = object({ l: { contains: { type: "string" }, minContains: 0, unevaluatedItems: { type: "integer" } } });
  expect(outcome(schema, { l: ["a", 1, "b"] })).toHaveLength(1);
  expect(outcome(schema, { l: ["a", true, "b"] })).toEqual(["WRONG_TYPE /l/1: expected integer, got boolean true"]);
  expect(outcome(object({ l: { allOf: [{ prefixItems: [{}] }], unevaluatedItems: false } }), { l: [1, 2] })).toEqual([
    "INVALID /l/1: no value is allowed here",
  ]);
});

const SLOW: readonly (readonly [name: string, schema: JsonObject, args: JsonObject])[] = [
  [
    "a large object held against hundreds of others",
    { properties: { a: { anyOf: Array.from({ length: 900 }, (_, i) => ({ const: { i } })) } } },
    { a: Object.fromEntries(Array.from({ length: 15_000 }, (_, i) => [`k${i}`, i])) },
  ],
  [
    "thousands of names held against hundreds of patterns",
    { patternProperties: Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`^p${i}[a-z]+$`, {}])) },
    Object.fromEntries(Array.from({ length: 15_000 }, (_, i) => [`p${i}`, i])),
  ],
  [
    "a long list held against hundreds of forms",
    { properties: { a: { items: { anyOf: Array.from({ length: 900 }, (_, i) => ({ const: i })) } } } },
    { a: Array.from({ length: 15_000 }, () => "x") },
  ],
];

for (const [name, schema, args] of SLOW) {
  test(`${name} ends in time [X-D05]`, () => {
    expect(checker.problem(schema)).toBeUndefined();
    outcome(schema, {});
    const spent = cpuMs(() => expect(outcome(schema, args)[0]).toMatch(/^TOO_LARGE/));
    expect(spent).toBeLessThan(AT_ONCE_MS);
  }, 180_000);
}

test("arguments that are too deep or too many are refused in time [X-D06]", () => {
  let deep: JsonValue = [];
  for (let i = 0; i < 5_000; i++) deep = [deep];
  expect(outcome({ type: "object" }, { deep })).toEqual(["TOO_LARGE : nested deeper than 128 levels"]);
  const many = { list: Array.from({ length: 200_000 }, () => 1) };
  const spent = cpuMs(() => expect(outcome({ type: "object" }, many)).toEqual(["TOO_LARGE : more than 20000 values"]));
  expect(spent).toBeLessThan(AT_ONCE_MS);
});

test("thousands of wrong items give twenty lines and a count", () => {
  const schema = object({ list: { type: "array", items: { type: "integer" } } });
  const lines = outcome(schema, { list: Array.from({ length: 1_000 }, (_, i) => `${i}`) });
  expect(lines).toHaveLength(21);
  expect(lines[0]).toBe('WRONG_TYPE /list/0: expected integer, got string "0"');
  expect(lines[20]).toBe("INVALID : 980 more mistakes are not listed");
});

test("large arguments that fit are let pass, also at the first call", () => {
  const row = object({
    x: { type: "integer", minimum: 0 },
    y: { type: "string", pattern: "^[a-z]+$" },
    k: { enum: ["a"] },
  });
  const rows = Array.from({ length: 4_000 }, (_, i) => ({ x: i, y: "abc", k: "a" }));
  const first = createSchemaChecker({ maxCompiled: 1 });
  expect(first.check(object({ rows: { type: "array", items: row } }), { rows }).ok).toBe(true);
});

test("a long list is held against uniqueItems in linear time", () => {
  const schema = object({ list: { type: "array", uniqueItems: true } });
  const list = Array.from({ length: 6_000 }, (_, i) => ({ i }));
  outcome(schema, { list: [] });
  const spent = cpuMs(() => expect(outcome(schema, { list: [...list, { i: 0 }] })[0]).toMatch(/^INVALID/));
  expect(spent).toBeLessThan(1_000);
  expect(outcome(schema, { list: ["1", 1, '"1', "{}", {}] })).toHaveLength(1);
});

test("values and names in messages are cut, whole and well-formed", () => {
  const long = "😀".repeat(10_000);
  const [line] = outcome(object({ a: { type: "integer" } }), { a: long });
  expect(line?.length).toBeLessThan(120);
  expect(line?.isWellFormed()).toBe(true);
  const unknown = outcome(object({}), { [long]: 1, [`${long}x`]: 2 });
  for (const text of unknown) expect([text.length < 500, text.isWellFormed()]).toEqual([true, true]);
});

test("a checker keeps no more compiled schemas than it may and still checks all", () => {
  const two = createSchemaChecker({ maxCompiled: 2 });
  const schemas = [1, 2, 3, 4].map((n) => object({ [`p${n}`]: { type: "string" } }));
  for (let round = 0; round < 3; round++) {
    for (const [i, schema] of schemas.entries()) expect(two.check(schema, { [`p${i + 1}`]: "x" }).ok).toBe(true);
  }
});

test("schemas are only read: frozen ones do as well", () => {
  const freeze = <T>(value: T): T => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(freeze);
    return Object.freeze(value);
  };
  const schema = freeze(object({ a: { $ref: "#/$defs/x" } }, { $defs: { x: { type: "string", default: "d" } } }));
  expect(outcome(schema, freeze({ a: "x" }))).toEqual(['ok {"a":"x"}']);
});

test("what is wrong with a schema is one line, whatever it quotes", () => {
  expect(checker.problem({ $ref: "a\nb" })).toBe(
    '/$ref: "a\\u000ab" is not in the schema: only references to its own parts ("#…") are followed',
  );
});

test("arguments that take long are checked in slices, between which others have their turn [X-D05]", async () => {
  const schema = object({ list: { type: "array", items: { anyOf: [{ type: "integer" }, { type: "null" }] } } });
  const args = { list: Array.from({ length: 2_000 }, (_, i) => i) };
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const begun = pausing.beginCheck(schema, args);
  expect("ok" in begun).toBe(false);
  const settled = "ok" in begun ? begun : await begun.finish(new AbortController().signal);
  isOver = true;
  expect(settled).toEqual(checker.check(schema, args));
  // Each item has three schemas, and each is a slice of its own.
  expect(turns).toBeGreaterThan(2_000);
  expect("ok" in checker.beginCheck(schema, { list: [1] })).toBe(true);
});

test("a call that ends takes the check of its arguments with it", async () => {
  const schema = object({ list: { type: "array", items: { type: "integer" } } });
  const args = { list: Array.from({ length: 2_000 }, (_, i) => i) };
  const begun = pausing.beginCheck(schema, args);
  const ending = new AbortController();
  const finished = "ok" in begun ? Promise.resolve(begun) : begun.finish(ending.signal);
  ending.abort(new GatewayError("CALL_CANCELLED", "cancelled"));
  await expect(finished).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
  const told = pausing.mismatches(schema, args, ending.signal);
  await expect(told).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
});
