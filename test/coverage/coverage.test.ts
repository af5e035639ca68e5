import { expect, test } from "vitest";
import type { SourceModule } from "../architecture/source-tree.ts";
import type { Behaviour, Group } from "./behaviour.ts";
import { readCitations } from "./citations.ts";
import { MANIFEST } from "./manifest.ts";
import { compare, readCoverage } from "./report.ts";

const coverage = readCoverage();

function citationsOf(text: string): string[] {
  const { citations, problems } = readCitations([module(text)]);
  expect(problems).toEqual([]);
  return citations.map(({ id }) => id);
}

function problemsOf(text: string): readonly string[] {
  return readCitations([module(text)]).problems;
}

function module(text: string): SourceModule {
  return { path: "test/a.test.ts", text, imports: [] };
}

function compared(behaviour: Behaviour, cited: readonly string[]): readonly string[] {
  const group: Group = { prefix: "Y-D", title: "files", behaviours: { "Y-D01": behaviour } };
  return compare(
    [group],
    cited.map((id) => ({ id, path: "test/a.test.ts" })),
  ).problems;
}

test("manifest and tests agree: every id is cited, planned or in a document, and none is cited that is unknown", () => {
  expect(coverage.problems).toEqual([]);
});

test("the manifest has every id once, numbered without a gap", () => {
  const sizes = MANIFEST.map(({ prefix, behaviours }) => {
    const ids = Object.keys(behaviours);
    expect(ids).toEqual(ids.map((_, i) => `${prefix}${String(i + 1).padStart(2, "0")}`));
    return [prefix, ids.length];
  });
  expect(Object.fromEntries(sizes)).toEqual({
    "S1-": 30,
    "S2-": 130,
    "Y-D": 16,
    "T-D": 9,
    "A-D": 9,
    "U-D": 15,
    "S-D": 12,
    "M-D": 24,
    "R-D": 9,
    "G-D": 9,
    "K-D": 5,
    "X-D": 9,
  });
});

test("the reader sees the tests there are", () => {
  const files = new Set(
    readCoverage().groups.flatMap(({ standings }) => standings.flatMap((s) => [...s.files.keys()])),
  );
  expect(files.size).toBeGreaterThan(20);
  expect([...files].some((file) => file.startsWith("test/e2e/"))).toBe(true);
});

test("ids are read from every way to declare a test", () => {
  expect(citationsOf('test("a [S2-20]", () => {});')).toEqual(["S2-20"]);
  expect(citationsOf('test("a [S2-20] [Y-D01]", { timeout: 1 }, run); it(`b [S2-21, T-D02]`, run);')).toEqual([
    "S2-20",
    "Y-D01",
    "S2-21",
    "T-D02",
  ]);
  expect(citationsOf('test.each([["x"]])("a %s [S2-20]", run); test.concurrent.for([1])(`b [S2-21]`, run);')).toEqual([
    "S2-20",
    "S2-21",
  ]);
  expect(citationsOf('test.skipIf(w).each([1])("a [S2-20]", run); it.each`a\n${1}`("b [S2-21]", run);')).toEqual([
    "S2-20",
    "S2-21",
  ]);
  expect(
    citationsOf("describe('d', () => { test(`${name} a [S2-20]`, run); test('b' + 'c [S2-100]', run); });"),
  ).toEqual(["S2-20", "S2-100"]);
  expect(citationsOf('test(name, run); tested("x"); expect(test("a", run)).toBe(1);')).toEqual([]);
});

test.each([
  "a [S2-20…S2-39]",
  "a [S2-20-S2-39]",
  "a [S2-20 to S2-22]",
  "a [S2-20,S2-21]",
  "a (S2-20)",
  "a S2-20",
  "a [s2-20]",
  "a [S2-2]",
  "a [Y-D1]",
  "a [Y-D011]",
  "a [S2-20] and more",
  "a[S2-20]",
  "[S2-20, ] a",
])("a citation in another form is refused: %s", (title) => {
  expect(problemsOf(`test("${title}", run);`)).toEqual([
    "test/a.test.ts:1: cites in another form than [ID] or [ID, ID] at its end",
  ]);
});

test.each([
  'describe("a [S2-20]", run);',
  'test.each([["x [S2-20]"]])("%s", run);',
  'const title = "a [S2-20]"; test(title, run);',
  "const title = `a ${b} [S2-20]`;",
])("a citation that is in no title is refused: %s", (text) => {
  expect(problemsOf(text)).toEqual(["test/a.test.ts:1: cites where no title of a test is"]);
});

test.each(["test.skip", "test.todo", "test.fails", "it.concurrent.skip", "test.skip.each([1])"])(
  "a citation by a test that proves nothing is refused: %s",
  (callee) => {
    expect(problemsOf(`${callee}("a [S2-20]", run);`)).toEqual(["test/a.test.ts:1: cites and does not run"]);
    expect(problemsOf(`${callee}("a", run);`)).toEqual([]);
  },
);

test("words that are no ids are left alone", () => {
  expect(problemsOf('test("SO2-20 and E1, ID-D01, utf-8, S-Data and x-dim-1", run);')).toEqual([]);
});

test("manifest and tests are held against each other", () => {
  expect(compared({ text: "a" }, ["Y-D01"])).toEqual([]);
  expect(compared({ text: "a", waits: ["retry"] }, [])).toEqual([]);
  expect(compared({ text: "a", waits: ["retry"], rest: "b" }, ["Y-D01"])).toEqual([]);
  expect(compared({ text: "a" }, [])).toEqual([
    "Y-D01: no test cites it, it waits for nothing, and no document promises it",
  ]);
  expect(compared({ text: "a", waits: ["retry"] }, ["Y-D01"])).toEqual([
    "Y-D01: waits for retry, and a test cites it: delete `waits`, or say in `rest` what is not shown",
  ]);
  expect(compared({ text: "a", waits: ["retry"], rest: "b" }, [])).toEqual([
    "Y-D01: names the rest of what tests show, and no test cites it",
  ]);
  expect(compared({ text: "a" }, ["Y-D01", "Y-D02"])).toEqual([
    "Y-D02: cited by test/a.test.ts and not in the manifest",
  ]);
  const promise = (phrase: string): Behaviour => ({ text: "a", document: { file: "README.md", phrase } });
  expect(compared(promise("# Toolgate"), [])).toEqual([]);
  expect(compared(promise("nobody says this"), [])).toEqual(["Y-D01: README.md does not say it"]);
});
