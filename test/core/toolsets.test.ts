import { expect, test } from "vitest";
import { isVisible } from "../../src/core/access.ts";
import { includeCycle, type Toolset, Toolsets } from "../../src/core/toolsets.ts";
import { createRandom } from "./random.ts";

function set(name: string, more: Partial<Toolset> = {}): Toolset {
  return { name, description: "", tools: [], includes: [], base: false, access: undefined, ...more };
}

test("a tool is in the toolsets that name it, by name or pattern, and in all that include those [S1-18, S1-20]", () => {
  const toolsets = new Toolsets([
    set("weather", { tools: ["weather_now", "forecast"] }),
    set("github", { tools: ["github/*"] }),
    set("daily", { includes: ["weather", "mail"], tools: ["clock"] }),
    set("mail", { tools: ["mail_?"] }),
    set("everything", { includes: ["daily", "github"] }),
  ]);
  expect(toolsets.of("weather_now").names).toEqual(["daily", "everything", "weather"]);
  expect(toolsets.of("github/search").names).toEqual(["everything", "github"]);
  expect(toolsets.of("github").names).toEqual([]);
  expect(toolsets.of("mail_1").names).toEqual(["daily", "everything", "mail"]);
  expect(toolsets.of("mail_10").names).toEqual([]);
  expect(toolsets.of("other", ["github"]).names).toEqual(["everything", "github"]);
  expect(toolsets.of("other", ["its_own"]).names).toEqual(["its_own"]);
  for (const name of ["__proto__", "constructor", ""]) expect(toolsets.of(name).names).toEqual([]);
});

test("the tools of a base set are in every set, and no rule but its own holds for them [S1-19]", () => {
  const staff = { roles: ["staff"], subjects: [] };
  const admin = { roles: ["admin"], subjects: [] };
  const toolsets = new Toolsets([
    set("core", { tools: ["clock"], base: true, access: staff }),
    set("ops", { tools: ["deploy"], access: admin }),
  ]);
  const clock = toolsets.of("clock");
  expect(clock.names).toEqual(["core", "ops"]);
  expect(clock.sets.map(({ name }) => name)).toEqual(["core"]);
  expect(toolsets.of("deploy").names).toEqual(["ops"]);
});

test("who includes a set has no say in who may call its tools", () => {
  const admin = { roles: ["admin"], subjects: [] };
  const toolsets = new Toolsets([set("all", { includes: ["mail"], access: admin }), set("mail", { tools: ["send"] })]);
  expect(toolsets.of("send")).toMatchObject({ names: ["all", "mail"], sets: [{ name: "mail" }] });
  expect(toolsets.of("send", ["all"]).sets.map(({ name }) => name)).toEqual(["all", "mail"]);
});

test("a chain of includes that comes back to itself is found, with its steps", () => {
  const sets = (includes: Readonly<Record<string, readonly string[]>>) =>
    new Map(Object.entries(includes).map(([name, list]) => [name, { includes: list }]));
  expect(includeCycle(sets({ a: ["b"], b: ["c", "d"], c: ["d"], d: [] }))).toBeUndefined();
  expect(includeCycle(sets({ a: ["a"] }))).toEqual(["a", "a"]);
  expect(includeCycle(sets({ x: ["a"], a: ["b"], b: ["c"], c: ["a"] }))).toEqual(["a", "b", "c", "a"]);
  const long = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`s${n}`, [`s${n + 1}`]]));
  expect(includeCycle(sets(long))).toBeUndefined();
  expect(includeCycle(sets({ ...long, s2000: ["s0"] }))).toHaveLength(2_002);
});

test("membership by includes is what a walk over every step finds, for random toolsets", () => {
  const random = createRandom(5);
  for (let round = 0; round < 200; round++) {
    const count = 1 + Math.floor(random() * 8);
    // Only later ones are included, so that no chain comes back.
    const sets = Array.from({ length: count }, (_, n) =>
      set(`s${n}`, {
        tools: ["a", "b", "c"].filter(() => random() < 0.3),
        includes: Array.from({ length: count - n - 1 }, (_none, m) => `s${n + 1 + m}`).filter(() => random() < 0.4),
      }),
    );
    const has = (name: string, tool: string): boolean => {
      const found = sets.find((each) => each.name === name);
      return found?.tools.includes(tool) === true || found?.includes.some((other) => has(other, tool)) === true;
    };
    const toolsets = new Toolsets(sets);
    for (const tool of ["a", "b", "c"]) {
      expect(toolsets.of(tool).names).toEqual(sets.map(({ name }) => name).filter((name) => has(name, tool)));
    }
  }
});

test("of several rules each has to let a caller through", () => {
  const rule = {
    roles: ["a"],
    subjects: ["key:x"],
    also: [
      { roles: ["b"], subjects: [] },
      { roles: ["*"], subjects: [] },
    ],
  };
  const may = (id: string, ...roles: string[]): boolean => isVisible({ id, roles }, rule);
  expect(may("key:y", "a", "b")).toBe(true);
  expect(may("key:x", "b")).toBe(true);
  expect(may("key:y", "a")).toBe(false);
  expect(may("key:y", "b")).toBe(false);
  expect(may("key:x")).toBe(false);
});
