import { expect, test } from "vitest";
import { DocumentsAhead } from "../../src/config/documents-ahead.ts";
import { parseDocument } from "../../src/config/parse-document.ts";
import { SharedParts } from "../../src/config/shared-parts.ts";
import type { Clock } from "../../src/core/clock.ts";
import { createReadAhead } from "../../src/registry/read-ahead.ts";
import { createFakeClock } from "../core/fake-clock.ts";

/** A clock on which time passes when it is said to, without a turn for anybody. */
function handClock(): Clock & { pass(ms: number): void } {
  let nowMs = 0;
  return {
    ...createFakeClock(),
    monotonicMs: () => nowMs,
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

function nothingRead() {
  return { documents: new DocumentsAhead(), parts: new SharedParts() };
}

function declaration(count: number, name = "p"): string {
  const params = Array.from({ length: count }, (_, i) => `  - {name: p${i}, type: string, pattern: "^${name}${i}$"}\n`);
  return `name: t\nparams:\n${params.join("")}`;
}

test("patterns are compiled in their order, with turns for others between them", async () => {
  const clock = handClock();
  const compiled: string[] = [];
  let others = 0;
  const beforeEach: number[] = [];
  const readAhead = createReadAhead({
    clock,
    grammar: nothingRead(),
    compilePattern: (source) => {
      clock.pass(10);
      beforeEach.push(others);
      return compiled.push(source);
    },
  });
  let reading = true;
  const other = (): void => {
    others++;
    if (reading) setImmediate(other);
  };
  setImmediate(other);
  await readAhead.declaration(declaration(20), "yaml");
  reading = false;
  expect(compiled).toEqual(Array.from({ length: 20 }, (_, i) => `^p${i}$`));
  expect(beforeEach).toEqual(beforeEach.toSorted((a, b) => a - b));
  expect(new Set(beforeEach).size).toBe(20);
});

test("no more is compiled than a schema may have, and nothing of a text that has few patterns or is refused", async () => {
  const compiled: string[] = [];
  const compileWith = (work: number) =>
    createReadAhead({
      clock: handClock(),
      grammar: nothingRead(),
      compilePattern: (source) => {
        compiled.push(source);
        return work;
      },
    });
  await compileWith(1).declaration(declaration(8), "yaml");
  await compileWith(1).declaration(`${declaration(20)}name: again\n`, "yaml");
  expect(compiled).toEqual([]);
  await compileWith(9_000).declaration(declaration(20), "yaml");
  expect(compiled.splice(0)).toHaveLength(3);
  await compileWith(1).declaration(declaration(300), "yaml");
  expect(compiled.splice(0)).toHaveLength(101);
});

test("patterns of one declaration are compiled before those of the next begin", async () => {
  const compiled: string[] = [];
  const clock = handClock();
  const readAhead = createReadAhead({
    clock,
    grammar: nothingRead(),
    compilePattern: (source) => {
      clock.pass(10);
      return compiled.push(source);
    },
  });
  await Promise.all([
    readAhead.declaration(declaration(10, "a"), "yaml"),
    readAhead.declaration(declaration(10, "b"), "yaml"),
  ]);
  expect(compiled.map((source) => source[1]).join("")).toBe("a".repeat(10) + "b".repeat(10));
});

test("patterns of the schemas that a server offers are compiled ahead as well", async () => {
  const compiled: string[] = [];
  const readAhead = createReadAhead({
    clock: handClock(),
    grammar: nothingRead(),
    compilePattern: (source) => compiled.push(source),
  });
  const schema = (count: number) => ({
    properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { pattern: `^${i}$` }])),
  });
  await readAhead.schemas([schema(8), null]);
  expect(compiled).toEqual([]);
  await readAhead.schemas([schema(20), { patternProperties: { "^x": {} } }]);
  expect(compiled).toEqual([...Array.from({ length: 20 }, (_, i) => `^${i}$`), "^x"]);
});

test("a long document is read step by step, and left once for who asks for it", async () => {
  let nowMs = 0;
  const clock: Clock = { ...createFakeClock(), monotonicMs: () => (nowMs += 10) };
  const grammar = nothingRead();
  const readAhead = createReadAhead({ clock, grammar, compilePattern: () => 0 });
  // Not in the plain form, for the alias.
  const text = `name: t\nx-a: &a { b: 1 }\nx-c: *a\nx-d:\n${"  - { e: f, g: h }\n".repeat(500)}`;
  let others = 0;
  let reading = true;
  const other = (): void => {
    others++;
    if (reading) setImmediate(other);
  };
  setImmediate(other);
  await readAhead.declaration(text, "yaml");
  reading = false;
  // One at least for each 500 words and signs of some 6,000.
  expect(others).toBeGreaterThan(10);
  const read = grammar.documents.take(text, "yaml");
  const expected = parseDocument(text, "yaml");
  expect(read?.ok === true && read.document.value).toEqual(expected.ok && expected.document.value);
  expect(grammar.documents.take(text, "yaml")).toBeUndefined();
});

test("what is wrong with a long document is found ahead too, and a short one is left alone", async () => {
  const grammar = nothingRead();
  const readAhead = createReadAhead({ clock: handClock(), grammar, compilePattern: () => 0 });
  const twice = `name: a\nname: b\n${"# c\n".repeat(2_000)}`;
  await readAhead.declaration(twice, "yaml");
  expect(grammar.documents.take(twice, "yaml")).toEqual(parseDocument(twice, "yaml"));
  await readAhead.declaration("name: a\n", "yaml");
  expect(grammar.documents.take("name: a\n", "yaml")).toBeUndefined();
});

test("documents that nobody asks for give way", () => {
  const documents = new DocumentsAhead();
  const names = Array.from({ length: 20 }, (_, i) => `name: t${i}\n`);
  for (const name of names) documents.keep(name, "yaml", parseDocument(name, "yaml"));
  expect(names.filter((name) => documents.take(name, "yaml") !== undefined)).toEqual(names.slice(-4));
});
