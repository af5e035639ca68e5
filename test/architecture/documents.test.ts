import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const documents = globSync(["*.md", "docs/*.md", "clients/*/*.md", "examples/*.md", "bench/*.md"]).map((path) => ({
  path,
  text: readFileSync(path, "utf8"),
}));

/** Names that the recipes of CONTRIBUTING.md make up. */
const MADE_UP = /\b(sql|quota)\b/;

test("there are documents to look at", () => {
  const names = documents.map((document) => document.path);
  expect(names).toEqual(expect.arrayContaining(["README.md", "CONTRIBUTING.md", join("docs", "architecture.md")]));
});

test("every file a document names exists", () => {
  const missing = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/`((?:src|test|proto|docs|examples|clients|bench|deploy|gen|\.ci)\/[\w./-]+)`/g)]
      .map((match) => match[1] ?? "")
      .filter((file) => !MADE_UP.test(file) && !existsSync(file))
      .map((file) => `${path}: ${file}`),
  );
  expect(missing).toEqual([]);
});

test("every relative link of a document leads to a file", () => {
  const dead = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
      .map((match) => join(dirname(path), match[1] ?? ""))
      .filter((file) => !existsSync(file))
      .map((file) => `${path}: ${file}`),
  );
  expect(dead).toEqual([]);
});
