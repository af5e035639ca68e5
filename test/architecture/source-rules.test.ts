import ts from "typescript";
import { expect, test } from "vitest";
import { at, nodesOf, parseModule, readModules, type SourceModule } from "./source-tree.ts";

const source = readModules("src");
const client = readModules("clients/typescript/src");
const shipped = [...source, ...client];
/** Without this file, which names what it forbids. */
const tests = readModules("test").filter((module) => !module.path.endsWith("/source-rules.test.ts"));

/** `path:line` of every node a predicate finds. A module whose text lacks the word has none, and need not be parsed. */
function findings(modules: readonly SourceModule[], word: RegExp, matches: (node: ts.Node) => boolean): string[] {
  return modules
    .filter((module) => word.test(module.text))
    .flatMap((module) =>
      nodesOf(parseModule(module))
        .filter(matches)
        .map((node) => at(module, node)),
    );
}

function isMember(node: ts.Node, object: string, member?: string): boolean {
  return (
    ts.isPropertyAccessExpression(node) &&
    node.expression.getText() === object &&
    (member === undefined || node.name.text === member)
  );
}

function hasModifier(node: ts.Node, kind: ts.SyntaxKind): boolean {
  return ts.canHaveModifiers(node) && ts.getModifiers(node)?.some((modifier) => modifier.kind === kind) === true;
}

/** Process entry and command line: the two that talk to a terminal and know the environment. */
function isEntry(module: SourceModule): boolean {
  return module.path === "src/main.ts" || module.path.startsWith("src/cli/");
}

test("there is source to look at", () => {
  expect(source.length).toBeGreaterThan(60);
  expect(client.length).toBeGreaterThan(2);
});

test("no file is longer than 400 lines", () => {
  const helpers = tests.filter((module) => !module.path.endsWith(".test.ts"));
  const long = [...shipped, ...helpers].filter((module) => module.text.trimEnd().split("\n").length > 400);
  expect(long.map((module) => module.path)).toEqual([]);
});

test("files are named in kebab-case", () => {
  const names = [...shipped, ...tests].map((module) => module.path);
  expect(names.filter((path) => !/\/[a-z0-9]+(-[a-z0-9]+)*(\.test|\.config)?\.(ts|js)$/.test(path))).toEqual([]);
});

test("the environment is read by the process entry and the command line only", () => {
  const inner = source.filter((module) => !isEntry(module));
  expect(findings(inner, /process/, (node) => isMember(node, "process", "env"))).toEqual([]);
});

test("nothing but the process entry and the command line writes to the console", () => {
  const inner = [...source.filter((module) => !isEntry(module)), ...client];
  expect(
    findings(
      inner,
      /console|process/,
      (node) => isMember(node, "console") || isMember(node, "process", "stdout") || isMember(node, "process", "stderr"),
    ),
  ).toEqual([]);
});

test("exports have names: no default export and no export of everything", () => {
  expect(
    findings(
      shipped,
      /export (default|\*|=)/,
      (node) =>
        ts.isExportAssignment(node) ||
        hasModifier(node, ts.SyntaxKind.DefaultKeyword) ||
        (ts.isExportDeclaration(node) && node.exportClause === undefined),
    ),
  ).toEqual([]);
});

test("every export of core and of the public API says what it promises", () => {
  const documented = source.filter((module) => module.path.startsWith("src/core/"));
  const bare = findings(
    documented,
    /export/,
    (node) => hasModifier(node, ts.SyntaxKind.ExportKeyword) && ts.getJSDocCommentsAndTags(node).length === 0,
  );
  expect(bare).toEqual([]);
});

test("a linter is silenced on one line, for a named rule and a reason", () => {
  const silenced = [...shipped, ...tests].flatMap((module) =>
    module.text
      .split("\n")
      .map((line, index) => ({ line, where: `${module.path}:${index + 1}` }))
      .filter(({ line }) => /(oxlint|eslint)-disable|@ts-(ignore|expect-error|nocheck)|biome-ignore/.test(line))
      .filter(({ line }) => !/\/\/ oxlint-disable-(next-)?line [\w/, -]+ -- \S/.test(line))
      .filter(({ line }) => !/\/\/ @ts-expect-error \S/.test(line))
      .map(({ where }) => where),
  );
  expect(silenced).toEqual([]);
});

test("nothing is left to do in a comment", () => {
  const unfinished = [...shipped, ...tests].filter((module) => /\b(TODO|FIXME|XXX)\b/.test(module.text));
  expect(unfinished.map((module) => module.path)).toEqual([]);
});
