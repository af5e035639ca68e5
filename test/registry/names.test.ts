import { expect, test } from "vitest";
import { AliasTable } from "../../src/registry/names.ts";

const ALIAS = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

function aliases(names: readonly string[]): Record<string, string> {
  const table = new AliasTable();
  table.update(names, []);
  return Object.fromEntries(names.map((name) => [name, table.aliasOf(name)]));
}

test("a name that every provider accepts is its own alias, another is made to fit", () => {
  expect(aliases(["get_weather", "order.status", "9lives", "server/tool-x"])).toEqual({
    get_weather: "get_weather",
    "order.status": "order_status",
    "9lives": "_9lives",
    "server/tool-x": "server_tool_x",
  });
});

test("names that would share an alias each get a hash of their own, whatever the order they came in", () => {
  const names = ["a.b", "a-b", "c.d"];
  const expected = aliases(names);
  expect(expected["c.d"]).toBe("c_d");
  expect(expected["a.b"]).toMatch(/^a_b_[0-9a-f]{10}$/);
  expect(expected["a-b"]).toMatch(/^a_b_[0-9a-f]{10}$/);
  expect(expected["a.b"]).not.toBe(expected["a-b"]);
  expect(aliases(names.toReversed())).toEqual(expected);
  const oneByOne = new AliasTable();
  for (const name of names) oneByOne.update([name], []);
  expect(Object.fromEntries(names.map((name) => [name, oneByOne.aliasOf(name)]))).toEqual(expected);
});

test("a tool's own name is never another's alias", () => {
  const table = new AliasTable();
  table.update(["a.b"], []);
  expect(table.aliasOf("a.b")).toBe("a_b");
  expect(table.update(["a_b"], [])).toEqual(new Set(["a.b"]));
  expect(table.aliasOf("a_b")).toBe("a_b");
  expect(table.aliasOf("a.b")).toMatch(/^a_b_/);
  expect(table.update([], ["a_b"])).toEqual(new Set(["a.b"]));
  expect(table.aliasOf("a.b")).toBe("a_b");
});

test("a tool that is named like another's hashed alias gets it all the same", () => {
  const hashed = aliases(["a.b", "a-b"])["a.b"] ?? "";
  const all = aliases(["a.b", "a-b", hashed]);
  expect(all[hashed]).toBe(hashed);
  expect(all["a.b"]).toMatch(/^a_b_[0-9a-f]{32}$/);
  expect(new Set(Object.values(all)).size).toBe(3);
});

test("a name too long for an alias is cut and gets a hash", () => {
  const long = `${"s".repeat(64)}/${"t".repeat(64)}`;
  const all = aliases([long, `${long}x`]);
  for (const alias of Object.values(all)) expect(alias).toMatch(ALIAS);
  expect(new Set(Object.values(all)).size).toBe(2);
});

test("whatever the names, aliases fit and differ", () => {
  const alphabet = ["a", "_", ".", "-", "/", "1"];
  const names = alphabet.flatMap((x) => alphabet.flatMap((y) => alphabet.map((z) => `${x}${y}${z}`)));
  const all = Object.values(aliases(names));
  for (const alias of all) expect(alias).toMatch(ALIAS);
  expect(new Set(all).size).toBe(names.length);
});
