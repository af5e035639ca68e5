import { expect, test } from "vitest";
import { parseGatewayConfig } from "../../src/config/gateway-config.ts";
import { LiveSettings } from "../../src/config/live-settings.ts";
import { isVisible } from "../../src/core/access.ts";
import type { Declaration } from "../../src/registry/declaration.ts";
import { declare, problems, type Reading } from "./declaration-fixture.ts";
import { offered, startServers } from "./server-fixture.ts";
import { ANONYMOUS, until } from "./support.ts";

/** Reads declarations as under this gateway.yaml. */
function under(text: string): Reading {
  const parsed = parseGatewayConfig(text, { file: "gateway.yaml", folder: "/srv" });
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join("\n"));
  const { defaults, origins } = new LiveSettings(parsed.config).ofDeclarations;
  return { defaults, origins };
}

function tool(more = "", name = "order_status"): string {
  return `name: ${name}\ndescription: 查询订单 Looks an order up by its number\ntype: http\nendpoint: https://api.example.com/x\n${more}`;
}

function sees(declaration: Declaration, ...roles: string[]): boolean {
  return isVisible({ id: "key:p", roles }, declaration.policy.access);
}

const SHOP = `toolsets:
  support:
    description: For people who answer customers
    tools: [order_status]
    allowed_roles: [support]
  shop:
    tools: ["order_*"]
    allowed_roles: [shop, admin]
groups:
  g: { allowed_roles: [group] }
defaults:
  allowed_roles: [everybody]
`;

test("a toolset's roles stand in for a tool that has none; its own count alone; then group and defaults [S2-55]", () => {
  const reading = under(SHOP);
  const shared = declare(tool("group: g\n"), reading);
  expect(sees(shared, "support", "shop")).toBe(true);
  expect(sees(shared, "group", "everybody")).toBe(false);
  const own = declare(tool("allowed_roles: [own]\n"), reading);
  expect([sees(own, "own"), sees(own, "support", "shop")]).toEqual([true, false]);
  expect(own.toolsets).toEqual(["shop", "support"]);
  const grouped = declare(tool("group: g\n", "other"), reading);
  expect([sees(grouped, "group"), sees(grouped, "everybody")]).toEqual([true, false]);
  expect(sees(declare(tool("", "other"), reading), "everybody")).toBe(true);
});

test("a tool in several toolsets needs what each of them says: another set never opens it [S2-55]", () => {
  const declaration = declare(tool(), under(SHOP));
  expect(sees(declaration, "support")).toBe(false);
  expect(sees(declaration, "shop")).toBe(false);
  expect(sees(declaration, "support", "admin")).toBe(true);
  const [before, after] = ["", "  open: { tools: ['*'] }\n  all: { tools: ['*'], allowed_roles: ['*'] }\n"].map(
    (more) => declare(tool(), under(SHOP.replace("groups:", `${more}groups:`))),
  );
  for (const roles of [["support"], ["shop"], ["admin", "support"], []]) {
    expect(after && sees(after, ...roles)).toBe(before && sees(before, ...roles));
  }
});

test("`explain` shows the toolsets with what they are for, and each rule with its line [S1-20]", () => {
  const { explained } = declare(tool(), under(SHOP));
  expect(explained.filter(({ key }) => key.startsWith("toolsets.") || key.startsWith("allowed_"))).toEqual([
    { key: "toolsets.shop", value: '""', origin: "gateway.yaml:6" },
    { key: "toolsets.support", value: "For people who answer customers", origin: "gateway.yaml:2" },
    { key: "toolsets.shop.allowed_roles", value: '["shop","admin"]', origin: "gateway.yaml:8" },
    { key: "toolsets.support.allowed_roles", value: '["support"]', origin: "gateway.yaml:5" },
  ]);
});

test("`toolset` puts a tool into one or several; without any in gateway.yaml the name alone makes it [S1-18]", () => {
  const bare = declare(tool("toolset: weather\n"));
  expect(bare.toolsets).toEqual(["weather"]);
  expect(bare.explained).toContainEqual({ key: "toolsets.weather", value: '""', origin: "file:t.yaml:5" });
  expect(declare(tool("toolset: [b, a]\n")).toolsets).toEqual(["a", "b"]);
  const reading = under("toolsets: { weather: { allowed_roles: [w] }, all: { includes: [weather] } }");
  const placed = declare(tool("toolset: weather\n"), reading);
  expect(placed.toolsets).toEqual(["all", "weather"]);
  expect([sees(placed, "w"), sees(placed)]).toEqual([true, false]);
});

test("`toolset` names one that gateway.yaml has where it has any, so that a slip never takes a rule away", () => {
  const reading = under("toolsets: { weather: {}, admin: { allowed_roles: [a] } }");
  expect(problems(tool("toolset: [weather, admn]\n"), reading)).toEqual([
    '5:1 `toolset`: gateway.yaml has no toolset "admn"; did you mean "admin"?',
  ]);
  expect(problems(tool("toolset: zzzzzz\n"), reading)).toEqual([
    expect.stringContaining("add it under `toolsets` there, or leave it out"),
  ]);
  expect(problems(tool("toolset: 'a b'\n"))).toHaveLength(1);
  expect(problems(tool("toolset: []\n"))).toHaveLength(1);
});

test("etags tell of another toolset, contract digests do not", () => {
  const [before, after, plain] = [
    "toolsets: { a: { tools: [order_status] } }",
    "toolsets: { b: { tools: ['order*'] } }",
    "",
  ].map((text) => declare(tool(), under(text)));
  expect(new Set([before?.digest, after?.digest, plain?.digest]).size).toBe(3);
  expect(new Set([before?.contractDigest, after?.contractDigest, plain?.contractDigest]).size).toBe(1);
});

test("with `expose: toolsets` a tool that is in none is nobody's, and a note says so [S1-18]", () => {
  const reading = under("expose: toolsets\ntoolsets: { some: { tools: [order_status] } }");
  expect(declare(tool(), reading)).toMatchObject({ exposed: true, toolsets: ["some"], notes: [] });
  const hidden = declare(tool("", "other"), reading);
  expect(hidden).toMatchObject({ exposed: false, toolsets: [] });
  expect(hidden.notes.map(({ message }) => message)).toEqual([
    expect.stringContaining("it is in no toolset, and gateway.yaml says `expose: toolsets`"),
  ]);
  expect(hidden.explained).toContainEqual({
    key: "expose",
    value: "toolsets: it is in none, so no caller sees it",
    origin: "gateway.yaml:1",
  });
});

test("a server's tools are in toolsets by their names, and need what server and toolset say; the server is in none", async () => {
  const defaults = under(`toolsets:
  files: { tools: ["fs", "fs/*"], allowed_roles: [files] }
  writing: { tools: ["fs/write*"], allowed_roles: [writer] }`).defaults;
  const text =
    "name: fs\ntype: mcp\nmcp: {server: fs}\nallowed_roles: [staff]\ntools: {overrides: {open: {allowed_roles: ['*']}}}\n";
  const { registry } = await startServers({
    files: { "fs.yaml": text },
    offers: { fs: [offered("read"), offered("write"), offered("open")] },
    ...(defaults === undefined ? {} : { defaults }),
  });
  const seen = (...roles: string[]): readonly string[] =>
    registry.list({ id: "key:p", roles }).tools.map(({ definition }) => definition.name);
  await until(registry, () => seen().length > 0);
  expect(seen()).toEqual(["fs/open"]);
  expect(seen("staff")).toEqual(["fs/open"]);
  expect(seen("files")).toEqual(["fs/open"]);
  expect(seen("staff", "files")).toEqual(["fs/open", "fs/read"]);
  expect(seen("staff", "files", "writer")).toEqual(["fs/open", "fs/read", "fs/write"]);
  const staff = { id: "key:p", roles: ["staff", "files", "writer"] };
  expect(registry.get("fs/write", staff).definition.toolsets).toEqual(["files", "writing"]);
  const lines = registry.explain("fs/write", staff).values.filter(({ key }) => key.includes("allowed_roles"));
  expect(lines.map(({ key, value }) => `${key} ${value}`)).toEqual([
    'toolsets.files.allowed_roles ["files"]',
    'toolsets.writing.allowed_roles ["writer"]',
    'allowed_roles ["staff"]',
  ]);
  expect(registry.explain("fs", staff).definition.toolsets).toEqual([]);
});

test("a name in a toolset that no tool has is a note with the nearest name, which goes when the tool comes", async () => {
  const { defaults, origins } = under(
    "toolsets:\n  a: { tools: [order_statos, fs, fs/late, 'no/*'] }\n  b: { tools: [order_statos] }",
  );
  const toolsets = defaults?.toolsets ?? expect.unreachable();
  const { registry, servers, write } = await startServers({
    files: { "one.yaml": tool(), "fs.yaml": "name: fs\ntype: mcp\nmcp: {server: fs}\n" },
    toolsets: () => ({ toolsets, origins: origins ?? new Map() }),
  });
  const notes = (): readonly string[] =>
    registry
      .list(ANONYMOUS)
      .problems.flatMap(({ source, line, note, message }) =>
        source === "gateway.yaml" ? [`${line} ${note} ${message}`] : [],
      );
  const unknown = (set: string, line: number): string =>
    `${line} true toolset "${set}" names the tool "order_statos": no tool has this name; did you mean "order_status"?`;
  const isServer = '2 true toolset "a" names the tool "fs": it is a server: write `fs/*` for its tools';
  expect(notes()).toEqual([unknown("a", 2), unknown("b", 3), isServer]);
  expect(registry.list({ id: "key:x", roles: [] }).problems).toEqual([]);
  servers.opened[0]?.offers([offered("early")]);
  await until(registry, () => notes().length === 4);
  expect(notes()[3]).toContain('toolset "a" names the tool "fs/late": no tool has this name');
  servers.opened[0]?.offers([offered("early"), offered("late")]);
  await write("two.yaml", tool("", "order_statos"));
  await until(registry, () => notes().length === 1);
  expect(notes()).toEqual([isServer]);
});

test("wrong toolsets are refused where they stand, with the mend and with the way a cycle takes", () => {
  const refused = (text: string): readonly string[] => {
    const parsed = parseGatewayConfig(text, { file: "gateway.yaml", folder: "/srv" });
    return parsed.ok ? [] : parsed.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
  };
  expect(refused("toolsets:\n  a: { includes: [b] }\n  b: { includes: [c] }\n  c: { includes: [a] }\n")).toEqual([
    "2:8 `toolsets.a.includes` comes back to itself: a → b → c → a; remove one of these steps",
  ]);
  expect(refused("toolsets:\n  weather: {}\n  b: { includes: [wether] }\n")).toEqual([
    '3:19 `toolsets.b.includes`: there is no toolset "wether"; did you mean "weather"?',
  ]);
  expect(refused("toolsets: { a: { tols: [x] } }")).toEqual([
    '1:18 unknown key `tols` in `toolsets.a`; did you mean "tools"?',
  ]);
  expect(refused("toolsets: { 'a b': {} }")).toHaveLength(1);
  expect(refused("toolsets: { a: { allowed_roles: [] } }")).toHaveLength(1);
});
