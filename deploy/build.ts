import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";

// Compiles into dist/ and lays the npm package out in dist/npm. The root cannot be the package: it carries a Node for
// development, which a package must not. The package has the layout of the root, so that all finds its way the same.

const PACKAGE = "dist/npm";

/** Keys of the root's package.json that hold for the package too. */
const SHARED = ["name", "version", "description", "license", "type", "engines", "bin", "dependencies"] as const;

/** The launcher stays as it is, since it must be readable for any Node. */
const CONTENT = [
  "dist/src",
  "dist/gen",
  "dist/clients",
  "src/cli/launch.js",
  "proto/toolgate",
  "docs/errors.md",
  "docs/schema",
  "README.md",
  "CHANGELOG.md",
  "LICENSE",
] as const;

rmSync("dist", { recursive: true, force: true });
const compiler = ["node_modules/@typescript/native/bin/tsc", "-p", "src/tsconfig.build.json"];
const { status } = spawnSync(process.execPath, compiler, { stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);

for (const path of CONTENT) cpSync(path, `${PACKAGE}/${path}`, { recursive: true });
const root = JSON.parse(readFileSync("package.json", "utf8")) as Readonly<Record<string, unknown>>;
const manifest = {
  ...Object.fromEntries(SHARED.map((key) => [key, root[key]])),
  exports: { ".": { types: "./dist/src/index.d.ts", default: "./dist/src/index.js" } },
};
writeFileSync(`${PACKAGE}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
