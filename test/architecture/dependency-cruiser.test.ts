import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readModules } from "./source-tree.ts";

const BIN = "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs";

interface CruiseReport {
  readonly modules: readonly { readonly source: string; readonly dependencies: readonly unknown[] }[];
  readonly summary: {
    readonly violations: readonly { readonly rule: { readonly name: string }; readonly from: string }[];
  };
}

/** Runs what `npm run deps` runs, with the report as JSON. */
async function cruise(): Promise<CruiseReport> {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  const [command, ...args] = (scripts["deps"] ?? "").split(" ");
  expect(command).toBe("depcruise");
  const cli = [BIN, ...args, "--output-type", "json"];
  return new Promise((resolve, reject) => {
    // It exits with the number of violations; the report is whole either way.
    execFile(process.execPath, cli, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (stdout === "") reject(new Error(`no report: ${stderr}`, { cause: error }));
      else resolve(JSON.parse(stdout) as CruiseReport);
    });
  });
}

test("dependency-cruiser sees every module of src and its imports, and finds nothing", {
  timeout: 180_000,
}, async () => {
  const report = await cruise();
  // With a TypeScript it cannot use it sees no module, finds no violation and is content.
  const seen = new Set(report.modules.map((module) => module.source));
  const withImports = new Set(report.modules.filter((m) => m.dependencies.length > 0).map((m) => m.source));
  const source = readModules("src");
  expect(source.map((module) => module.path).filter((path) => !seen.has(path))).toEqual([]);
  const importing = source.filter((module) => module.imports.length > 0).map((module) => module.path);
  expect(importing.filter((path) => !withImports.has(path))).toEqual([]);
  expect(report.modules.length).toBeGreaterThan(100);
  expect(report.summary.violations.map((violation) => `${violation.rule.name}: ${violation.from}`)).toEqual([]);
});
