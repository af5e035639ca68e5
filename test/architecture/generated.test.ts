import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { generatedDocuments } from "../../docs/generate.ts";

const run = promisify(execFile);

/** Path below a folder → text, for every file in it. */
async function readTree(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(
    files.map(async (file) => [relative(folder, file), await readFile(file, "utf8")] as const),
  );
  return new Map(texts);
}

/** Names of the files that stand in one tree only or differ. */
function differences(committed: Map<string, string>, fresh: Map<string, string>): string[] {
  const names = new Set([...committed.keys(), ...fresh.keys()]);
  return [...names].filter((name) => committed.get(name) !== fresh.get(name));
}

test.for([
  { template: "buf.gen.yaml", folder: "gen", least: 10 },
  { template: "clients/typescript/buf.gen.yaml", folder: "clients/typescript/src/gen", least: 6 },
])("$folder is what `npm run gen` makes of proto/", { timeout: 240_000 }, async ({ template, folder, least }) => {
  const output = await mkdtemp(join(tmpdir(), "toolgate-gen-"));
  try {
    const buf = "node_modules/@bufbuild/buf/bin/buf";
    // buf looks for protoc-gen-es on the path.
    const env = { ...process.env, PATH: `${resolve("node_modules/.bin")}${delimiter}${process.env["PATH"]}` };
    await run(process.execPath, [buf, "generate", "--template", template, "--output", output], { env });
    const fresh = await readTree(join(output, folder));
    expect(fresh.size).toBeGreaterThanOrEqual(least);
    expect(differences(await readTree(folder), fresh), "run `npm run gen`").toEqual([]);
  } finally {
    await rm(output, { recursive: true, force: true });
  }
});

test("the generated documents are what `npm run gen` makes of the source", { timeout: 240_000 }, async () => {
  const fresh = new Map(generatedDocuments().map((document) => [document.path, document.text]));
  expect(fresh.size).toBeGreaterThanOrEqual(4);
  const committed = await Promise.all(
    [...fresh.keys()].map(async (path) => [path, await readFile(path, "utf8")] as const),
  );
  const schemas = await readTree("docs/schema");
  expect(
    [...schemas.keys()].filter((name) => !fresh.has(`docs/schema/${name}`)),
    "made by nobody",
  ).toEqual([]);
  expect(differences(new Map(committed), fresh), "run `npm run gen`").toEqual([]);
});
