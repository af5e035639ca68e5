import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/core/json.ts";
import { providerSchema } from "../../src/models/provider-schema.ts";
import { createRandom } from "../core/random.ts";

const text = { type: "string" };
const object = (keys: JsonObject): JsonObject => ({ type: "object", ...keys });

test("what has no combination at its top is given as it is, whatever stands deeper", () => {
  const schema = object({ properties: { a: { anyOf: [text, { type: "null" }] } }, required: ["a"] });
  expect(providerSchema(schema)).toBe(schema);
});

test("alternatives that say what is required leave the properties, and are told in words [M-D14]", () => {
  const schema = object({ properties: { a: text, b: text }, anyOf: [{ required: ["a"] }, { required: ["b"] }] });
  expect(providerSchema(schema)).toEqual(
    object({ properties: { a: text, b: text }, description: "Give at least one of: `a`; `b`." }),
  );
});

test("alternatives that hold the properties show them all, with what each of them requires required [M-D14]", () => {
  const byId = { properties: { kind: { const: "id" }, id: { type: "integer" } }, required: ["kind", "id"] };
  const byName = { properties: { kind: { const: "name" }, name: text }, required: ["kind", "name"] };
  const schema = { ...object({ description: "Finds.", oneOf: [object(byId), object(byName)] }), $defs: { x: text } };
  expect(providerSchema(schema)).toEqual({
    type: "object",
    $defs: { x: text },
    properties: { kind: { enum: ["id", "name"] }, id: { type: "integer" }, name: text },
    required: ["kind"],
    description: 'Finds.\nGive exactly one of: `kind` = "id" and `id`; `kind` = "name" and `name`.',
  });
});

test("a property that the alternatives describe in other ways keeps each way, and what the whole says of it", () => {
  const ways = [{ minLength: 2 }, { pattern: "^x" }];
  const schema = object({
    properties: { a: { ...text, description: "A." } },
    anyOf: ways.map((way) => ({ properties: { a: way } })),
  });
  expect(providerSchema(schema)["properties"]).toEqual({ a: { ...text, description: "A." } });
  const alone = object({ anyOf: ways.map((way) => ({ properties: { a: way } })) });
  expect(providerSchema(alone)["properties"]).toEqual({ a: { anyOf: ways } });
});

test("references and `allOf` are read through, also those that lead back", () => {
  const $defs = {
    base: { properties: { id: text, next: { $ref: "#/$defs/base" } }, required: ["id"] },
    more: { allOf: [{ $ref: "#/$defs/base" }, { properties: { extra: text } }, { $ref: "#/$defs/more" }] },
  };
  expect(providerSchema({ $ref: "#/$defs/more", $defs })).toEqual({
    $defs,
    type: "object",
    properties: { id: text, next: { $ref: "#/$defs/base" }, extra: text },
    required: ["id"],
  });
});

test("what holds under a condition may be given, and that there is more is said", () => {
  const schema = object({
    properties: { mode: text },
    if: { properties: { mode: { const: "deep" }, asked: { const: 1 } } },
    else: { properties: { depth: { type: "integer" } }, required: ["depth"] },
    dependentRequired: { mode: ["depth"] },
    not: { required: ["never"] },
  });
  expect(providerSchema(schema)).toEqual(
    object({
      properties: { mode: text, depth: { type: "integer" }, asked: {} },
      description:
        "`mode` needs `depth`.\nMore rules say what goes together; a call that breaks one is refused and told which.",
    }),
  );
});

test("a name that a closed schema refuses is not shown, and `unevaluatedProperties` closes the form", () => {
  const closed = object({ properties: { a: text }, additionalProperties: false, anyOf: [{ properties: { b: text } }] });
  expect(providerSchema(closed)).toEqual(object({ properties: { a: text }, additionalProperties: false }));
  const all = { allOf: [{ properties: { a: text } }, { properties: { b: text } }] };
  expect(providerSchema(object({ ...all, unevaluatedProperties: false }))).toEqual(
    object({ properties: { a: text, b: text }, additionalProperties: false }),
  );
  const open = object({ ...all, unevaluatedProperties: false, patternProperties: { "^x": text } });
  expect(providerSchema(open)).not.toHaveProperty("additionalProperties");
});

test("no reference is left to a place that the form does not have", () => {
  const schema = object({
    properties: { b: { $ref: "#/anyOf/0/properties/a", description: "B." } },
    anyOf: [{ properties: { a: text } }],
  });
  expect(providerSchema(schema)["properties"]).toEqual({ b: { description: "B." }, a: text });
});

test("names of JavaScript are names like others", () => {
  const schema = JSON.parse('{"anyOf":[{"properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}]}');
  expect(JSON.stringify(providerSchema(schema))).toBe(
    '{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}',
  );
});

test("a schema that doubles at each of its references is read in a bounded number of steps", () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => {
      const next = { $ref: `#/$defs/d${i + 1}` };
      return [`d${i}`, { properties: { [`p${i}`]: text }, allOf: [next, next] }];
    }),
  );
  const { properties } = providerSchema({ $ref: "#/$defs/d0", $defs: { ...$defs, d40: {} } });
  expect(properties).toHaveProperty("p39");
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`p${i}`, text]));
  const allOf = Array.from({ length: 5_000 }, () => ({ $ref: "#/$defs/many" }));
  expect(providerSchema({ allOf, $defs: { many: { properties: many } } })["properties"]).toEqual(many);
});

const NAMES = ["a", "b", "c"] as const;
const AT_TOP = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "dependentRequired"];

test("of random schemas: what fits the schema has all that the form requires and no name that it leaves out", () => {
  const ajv = new Ajv2020({ strict: false, validateSchema: false });
  let fitting = 0;
  for (let seed = 1; seed <= 150; seed++) {
    const random = diceOf(seed);
    const schema = randomSchema(random, 3);
    const form = providerSchema(schema);
    expect(form["type"]).toBe("object");
    expect(Object.keys(form).filter((key) => AT_TOP.includes(key))).toEqual([]);
    const declared = ajv.compile(schema);
    const shown = ajv.compile(form);
    for (let i = 0; i < 20; i++) {
      const value = randomArguments(random);
      if (!declared(value)) continue;
      fitting++;
      const problems = shown(value) ? [] : (shown.errors ?? []);
      // What only some alternatives say of a property is shown as theirs.
      const counted = problems.filter(({ instancePath }) => instancePath === "");
      expect(counted, JSON.stringify({ seed, schema, form, value })).toEqual([]);
    }
  }
  expect(fitting).toBeGreaterThan(200);
});

interface Dice {
  readonly chance: (share: number) => boolean;
  readonly below: (limit: number) => number;
  readonly pick: <T>(values: readonly T[]) => T;
  readonly some: <T>(values: readonly T[]) => T[];
}

function diceOf(seed: number): Dice {
  const random = createRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  return {
    chance: (share) => random() < share,
    below,
    pick: <T>(values: readonly T[]) => values[below(values.length)] as T,
    some: (values) => values.filter(() => random() < 0.5),
  };
}

function randomSchema(random: Dice, depth: number): JsonObject {
  const parts: [string, JsonValue][] = [["type", "object"]];
  if (random.chance(0.6)) parts.push(["properties", randomProperties(random)]);
  if (random.chance(0.4)) parts.push(["required", random.some(NAMES)]);
  if (random.chance(0.1)) parts.push(["additionalProperties", false]);
  if (depth === 3 && random.chance(0.3)) parts.push(["unevaluatedProperties", false]);
  for (const keyword of ["allOf", "anyOf", "oneOf"]) {
    if (depth > 0 && random.chance(0.4)) {
      const inner = Array.from({ length: 1 + random.below(3) }, () => randomSchema(random, depth - 1));
      parts.push([keyword, inner]);
    }
  }
  for (const keyword of ["if", "then", "not"]) {
    if (depth > 0 && random.chance(0.15)) parts.push([keyword, randomSchema(random, depth - 1)]);
  }
  return Object.fromEntries(parts);
}

function randomProperties(random: Dice): JsonObject {
  const schemas: readonly JsonValue[] = [text, { type: "integer" }, { const: "x" }, { enum: ["x", "y"] }, {}, true];
  return Object.fromEntries(random.some(NAMES).map((name) => [name, random.pick(schemas)]));
}

function randomArguments(random: Dice): JsonObject {
  const values: readonly JsonValue[] = ["x", "y", 1, 2];
  const value = Object.fromEntries(random.some(NAMES).map((name) => [name, random.pick(values)]));
  return isJsonObject(value) ? value : {};
}
