import { expect, test } from "vitest";
import { readModules, type SourceModule } from "./source-tree.ts";

// The same rules as .dependency-cruiser.cjs, derived from the source a second time by other means: a rule that was
// weakened, scoped away or that sees nothing shows as a difference.

/** Folder of src → what it may import besides itself: folders of src, and `gen`. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  core: [],
  config: ["core"],
  wire: ["core", "gen"],
  pipeline: ["core"],
  shaping: ["core"],
  secrets: ["core"],
  observability: ["core"],
  stores: ["core"],
  ledger: ["core"],
  models: ["core"],
  search: ["core"],
  adapters: ["core"],
  identity: ["core", "secrets"],
  registry: ["core", "config", "pipeline", "shaping", "search"],
  service: ["core", "registry", "ledger", "wire", "models", "identity", "gen"],
  cli: ["core", "config", "gen", "clients"],
};

const ENTRIES = ["src/gateway.ts", "src/gateway-tools.ts", "src/index.ts", "src/logins.ts", "src/main.ts"];

const modules = readModules("src");

/** `src/core/json.ts` → `core`, `gen/toolgate/…` → `gen`, `src/main.ts` → `src/main.ts`. */
function home(path: string): string {
  const [top = "", folder = "", ...rest] = path.split("/");
  if (top !== "src") return top;
  return rest.length === 0 ? path : folder;
}

function isFile(imported: string): boolean {
  return /^(src|gen|clients|test|examples|bench|docs)\//.test(imported);
}

/** `importer → imported` for every import that a predicate refuses. */
function refused(where: readonly SourceModule[], refuses: (from: string, to: string) => boolean): string[] {
  return where.flatMap((module) =>
    module.imports.filter((to) => refuses(module.path, to)).map((to) => `${module.path} → ${to}`),
  );
}

test("the walk sees the modules of every layer", () => {
  const count = (folder: string): number => modules.filter((module) => home(module.path) === folder).length;
  expect(count("core")).toBeGreaterThan(12);
  for (const folder of ["config", "wire", "service", "registry", "pipeline", "adapters", "shaping", "cli"]) {
    expect.soft(count(folder), `modules in src/${folder}`).toBeGreaterThan(1);
  }
  const imports = modules.flatMap((module) => module.imports);
  expect(imports.filter(isFile).length).toBeGreaterThan(modules.length);
  expect(imports.filter((to) => to.startsWith("node:")).length).toBeGreaterThan(10);
});

test("src holds the known folders and the entries, nothing else", () => {
  const homes = new Set(modules.map((module) => home(module.path)));
  expect([...homes].filter((name) => !Object.hasOwn(ALLOWED, name) && !ENTRIES.includes(name))).toEqual([]);
});

test("a folder imports itself and what the map allows", () => {
  const layered = modules.filter((module) => !ENTRIES.includes(module.path));
  expect(
    refused(layered, (from, to) => {
      const folder = home(from);
      // What gRPC servers say of themselves and of errors is generated too.
      if (from.startsWith("src/adapters/grpc/") && home(to) === "gen") return false;
      return isFile(to) && home(to) !== folder && ALLOWED[folder]?.includes(home(to)) !== true;
    }),
  ).toEqual([]);
});

test("core imports no platform module", () => {
  const core = modules.filter((module) => home(module.path) === "core");
  expect(refused(core, (_from, to) => to.startsWith("node:"))).toEqual([]);
});

test("adapters do not know each other, nor do steps", () => {
  const unit = (path: string): string | undefined =>
    /^src\/(?:adapters\/(?!shared\/)[^/]+(?=\/)|pipeline\/steps\/[^/]+$)/.exec(path)?.[0];
  expect(
    refused(modules, (from, to) => {
      const own = unit(from);
      return own !== undefined && unit(to) !== undefined && unit(to) !== own;
    }),
  ).toEqual([]);
});

test("only the composition root imports the list of adapters and the list of steps", () => {
  const isList = (path: string): boolean => /^src\/(adapters|pipeline)\/index\.ts$/.test(path);
  expect(
    refused(modules, (from, to) => isList(to) && !["src/gateway.ts", "src/gateway-tools.ts"].includes(from)),
  ).toEqual([]);
});

test("an RPC package is imported at the edge only", () => {
  const isRpc = (to: string): boolean => /^@(connectrpc|grpc|bufbuild)\//.test(to);
  // The adapter for gRPC upstreams is an edge of its own.
  const atEdge = (from: string): boolean =>
    ["wire", "service", "cli"].includes(home(from)) || from.startsWith("src/adapters/grpc/");
  expect(refused(modules, (from, to) => isRpc(to) && !atEdge(from))).toEqual([]);
});

test("only adapters and service import what opens a socket", () => {
  const opens = (to: string): boolean => /^(node:(net|tls|https?|http2|dgram|dns)(\/|$)|undici(\/|$))/.test(to);
  expect(refused(modules, (from, to) => opens(to) && !["adapters", "service"].includes(home(from)))).toEqual([]);
});

test("only the listed folders import the file system", () => {
  const mayTouch = ["registry", "secrets", "identity", "stores", "service", "config", "observability", "cli"];
  expect(
    refused(
      modules,
      (from, to) =>
        /^node:fs(\/|$)/.test(to) &&
        !mayTouch.includes(home(from)) &&
        // It looks whether a program can be started.
        !from.startsWith("src/adapters/shared/launcher/") &&
        // It reads descriptors and certificates.
        !from.startsWith("src/adapters/grpc/") &&
        from !== "src/main.ts",
    ),
  ).toEqual([]);
});

test("only the adapters' launcher and the command line start processes", () => {
  const mayStart = /^src\/(adapters\/shared\/launcher|cli)\//;
  expect(refused(modules, (from, to) => /^node:(child_process|cluster)$/.test(to) && !mayStart.test(from))).toEqual([]);
});

test("the published client imports nothing of the gateway", () => {
  const client = readModules("clients/typescript/src");
  expect(client.length).toBeGreaterThan(2);
  expect(refused(client, (_from, to) => isFile(to) && home(to) !== "clients")).toEqual([]);
});

test("every relative import names a .ts file and every platform module has its prefix", () => {
  const bare =
    /^(assert|buffer|child_process|crypto|dns|events|fs|http|http2|https|net|os|path|stream|tls|url|util)(\/|$)/;
  expect(refused(modules, (_from, to) => bare.test(to) || (isFile(to) && !/\.(ts|json)$/.test(to)))).toEqual([]);
});
