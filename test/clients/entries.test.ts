import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import manifest from "../../clients/typescript/package.json" with { type: "json" };
import root from "../../package.json" with { type: "json" };

const SOURCE = fileURLToPath(new URL("../../clients/typescript/src", import.meta.url));

/** Packages and built-in modules that an entry needs at run time, its own files' included. */
function packagesOf(entry: string): Set<string> {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const queue = [join(SOURCE, entry)];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, isType, path = ""] of text.matchAll(/^(?:import|export) (type )?[^;]*?from "([^"]+)";/gms)) {
      if (isType !== undefined) continue;
      if (path.startsWith(".")) queue.push(join(dirname(file), path));
      else packages.add(path);
    }
  }
  return packages;
}

test("the neutral and the browser entry need nothing of Node.js", () => {
  expect(packagesOf("index.ts")).toEqual(
    new Set(["@bufbuild/protobuf", "@bufbuild/protobuf/codegenv2", "@bufbuild/protobuf/wkt", "@connectrpc/connect"]),
  );
  expect(packagesOf("browser.ts")).toEqual(new Set(["@connectrpc/connect-web"]));
  expect(packagesOf("node.ts")).toContain("node:http");
});

test("the package's entries exist and its versions are those the repository tests", () => {
  expect(Object.keys(manifest.exports)).toEqual([".", "./node", "./browser"]);
  for (const { default: target } of Object.values(manifest.exports)) {
    expect(existsSync(join(SOURCE, target.replace("./dist/", "").replace(/\.js$/, ".ts")))).toBe(true);
  }
  const tested = { ...root.dependencies, ...root.devDependencies };
  expect(tested).toMatchObject({ ...manifest.dependencies, ...manifest.peerDependencies });
  expect(manifest.version).toBe(root.version);
});
