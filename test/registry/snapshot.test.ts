import { expect, test } from "vitest";
import { sourceProblem } from "../../src/registry/problems.ts";
import { Snapshot } from "../../src/registry/snapshot.ts";
import { buildDefinition, type Claim, ToolEntry } from "../../src/registry/tool-entry.ts";
import { createDemoAdapter, createDemoParse, declaration } from "./support.ts";

const parse = createDemoParse(createDemoAdapter());

function entry(name: string, alias = name): ToolEntry {
  const outcome = parse(declaration(name), { format: "yaml", source: "file:a.yaml" });
  if (!outcome.ok) throw new Error("not a declaration");
  const times = { createTimeMs: 0, updateTimeMs: 0, leaseExpireTimeMs: undefined };
  const claim: Claim = { name, source: "file:a.yaml", declaration: outcome.declaration, ...times };
  return new ToolEntry(claim, undefined, buildDefinition(claim, alias));
}

function snapshotOf(...entries: readonly ToolEntry[]): Snapshot {
  return Snapshot.empty.withTools(new Map(entries.map((tool) => [tool.definition.name, tool])));
}

function names(snapshot: Snapshot): string[] {
  return snapshot.tools.map((tool) => tool.definition.name);
}

test("a snapshot is sorted by code units whatever the order of changes, and stays as it was when it is followed by another", () => {
  const first = snapshotOf(entry("b"), entry("a"), entry("_"), entry("Z"));
  expect(names(first)).toEqual(["Z", "_", "a", "b"]);
  const second = first.withTools(
    new Map([
      ["aa", entry("aa")],
      ["A", entry("A")],
      ["b", undefined],
      ["none", undefined],
      ["z", entry("z")],
    ]),
  );
  expect(names(second)).toEqual(["A", "Z", "_", "a", "aa", "z"]);
  expect(names(first)).toEqual(["Z", "_", "a", "b"]);
  for (const name of names(second)) expect(second.named(name)?.definition.name).toBe(name);
  for (const name of ["b", "", "zz", "0"]) expect(second.named(name)).toBeUndefined();
});

test("tools are found by alias, and no longer by one they had before", () => {
  const first = snapshotOf(entry("a.b", "a_b"), entry("c"));
  expect(first.find("a_b")?.definition.name).toBe("a.b");
  const second = first.withTools(new Map([["a.b", entry("a.b", "a_b_1")]]));
  expect(second.find("a_b")).toBeUndefined();
  expect(second.find("a_b_1")?.definition.name).toBe("a.b");
  expect(second.named("a_b_1")).toBeUndefined();
});

test("names around a name are those next to it", () => {
  const snapshot = snapshotOf(...["a", "b", "c", "d", "e", "f"].map((name) => entry(name)));
  expect(snapshot.namesAround("c", 4)).toEqual(["a", "b", "c", "d"]);
  expect(snapshot.namesAround("zz", 4)).toEqual(["c", "d", "e", "f"]);
  expect(snapshot.namesAround("", 2)).toEqual(["a", "b"]);
  expect(snapshot.namesAround("c", 100)).toHaveLength(6);
});

test("problems are listed by source and replaced as a whole", () => {
  const first = Snapshot.empty.withProblems(
    new Map([
      ["file:b.yaml", [sourceProblem("file:b.yaml", "one"), sourceProblem("file:b.yaml", "two")]],
      ["file:a.yaml", [sourceProblem("file:a.yaml", "three")]],
    ]),
  );
  expect(first.problems.map(({ message }) => message)).toEqual(["three", "one", "two"]);
  const second = first.withProblems(new Map([["file:b.yaml", []]]));
  expect(second.problems.map(({ message }) => message)).toEqual(["three"]);
  expect(second.problemsOf("file:b.yaml")).toEqual([]);
  expect(first.problems).toHaveLength(3);
});
