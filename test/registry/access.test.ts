import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Access, isVisible } from "../../src/core/access.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Principal } from "../../src/core/principal.ts";
import type { RegistryEvent } from "../../src/core/registry.ts";
import { ChangeLog } from "../../src/registry/change-log.ts";
import type { Registry } from "../../src/registry/tool-registry.ts";
import { createRandom } from "../core/random.ts";
import {
  ANONYMOUS,
  declaration,
  OPEN_END,
  readEvents,
  registration,
  startRegistry,
  temporaryFolder,
  until,
} from "./support.ts";

const isSynced = (event: RegistryEvent): boolean => event.type === "synced";

async function declare(registry: Registry, name: string, rules = ""): Promise<void> {
  await registry.register(registration(declaration(name, "a tool", rules)), ANONYMOUS, OPEN_END);
}

/** What a principal can tell of a name: everything an error carries, the name itself taken out. */
function answersTo(registry: Registry, name: string, principal: Principal): readonly string[] {
  const ways = [
    () => registry.get(name, principal),
    () => registry.acquire(name, principal)[Symbol.dispose](),
    () => registry.explain(name, principal),
  ];
  return ways.map((way) => {
    try {
      way();
      return "there";
    } catch (error) {
      const { reason, message, modelMessage, metadata, violations } = GatewayError.from(error);
      return JSON.stringify({ reason, message, modelMessage, metadata, violations }).replaceAll(name, "NAME");
    }
  });
}

async function watched(registry: Registry, principal: Principal, after = 0): Promise<readonly RegistryEvent[]> {
  return readEvents(registry.watch(after, principal, OPEN_END), isSynced);
}

const namesOf = (events: readonly RegistryEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "upserted" ? [event.view.definition.name] : [])).toSorted();

test.each<readonly [string, Access | undefined, boolean]>([
  ["no rule", undefined, true],
  ["one of its roles", { roles: ["x", "reader"], subjects: [] }, true],
  ["any role", { roles: ["*"], subjects: [] }, true],
  ["its id", { roles: [], subjects: ["key:ci"] }, true],
  ["the beginning of its id", { roles: [], subjects: ["key:*"] }, true],
  ["a role and not its id", { roles: ["reader"], subjects: ["key:other"] }, true],
  ["a role that begins alike", { roles: ["read"], subjects: [] }, false],
  ["its role in other case", { roles: ["Reader"], subjects: [] }, false],
  ["its role as a subject", { roles: [], subjects: ["reader"] }, false],
  ["the beginning of its id without a star", { roles: [], subjects: ["key:"] }, false],
  ["nobody", { roles: [], subjects: [] }, false],
])("a rule with %s decides", (_what, access, expected) => {
  expect(isVisible({ id: "key:ci", roles: ["reader"], kind: "api_key" }, access)).toBe(expected);
});

test("for every principal List, Get, Watch, Call and Explain agree, and what is hidden is as if it were not there [S2-52, S2-53, S2-55, S2-56, X-D09]", {
  timeout: 180_000,
}, async () => {
  const random = createRandom(7);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] ?? expect.unreachable();
  const roles = ["ops", "sales", "admin"];
  const ids = ["key:a", "key:b", "jwt:a"];
  for (let round = 0; round < 12; round++) {
    const { registry } = await startRegistry({ folder: await temporaryFolder() });
    const access = new Map<string, Access | undefined>();
    for (let n = 0; n < 14; n++) {
      // Names that fight for an alias, too.
      const name = pick(["order", "order.status", "order-status", "order_status", `t${n}`, `t.${n}`, `t-${n}`]);
      const rules = {
        roles: random() < 0.5 ? [] : [pick(roles)],
        subjects: random() < 0.7 ? [] : [pick([...ids, "key:*"])],
      };
      const free = rules.roles.length + rules.subjects.length === 0;
      access.set(name, free ? undefined : rules);
      const lines = Object.entries(rules).flatMap(([key, list]) =>
        list.length > 0 ? [`${key}: ${list.join(" ")}`] : [],
      );
      await declare(registry, name, lines.join("\n"));
    }
    const principals = ids.map((id): Principal => ({ id, roles: roles.filter(() => random() < 0.4) }));
    for (const principal of [...principals, { id: "nobody", roles: [] }]) {
      const listing = registry.list(principal);
      const visible = [...access.keys()].filter((name) => isVisible(principal, access.get(name))).toSorted();
      expect(listing.tools.map(({ definition }) => definition.name)).toEqual(visible);
      expect(listing.problems).toEqual([]);
      const events = await watched(registry, principal);
      expect(namesOf(events)).toEqual(visible);
      expect(events.filter(({ type }) => type !== "upserted" && type !== "synced")).toEqual([]);
      const unknown = answersTo(registry, "zzzzzzzzzzzz", principal);
      // The same gateway with nothing but what the principal sees.
      const { registry: alone } = await startRegistry({ folder: await temporaryFolder() });
      for (const name of visible) await declare(alone, name);
      const aliasesOf = ({ tools }: ReturnType<Registry["list"]>): readonly string[] =>
        tools.map(({ definition }) => definition.alias);
      expect(aliasesOf(listing)).toEqual(aliasesOf(alone.list(principal)));
      for (const name of access.keys()) {
        const seen = answersTo(registry, name, principal);
        if (visible.includes(name)) expect(seen).toEqual(["there", "there", "there"]);
        else expect(seen).toEqual(answersTo(alone, name, principal));
      }
      for (const { definition } of listing.tools) {
        expect(registry.get(definition.alias, principal).definition.name).toBe(definition.name);
      }
      expect(new Set(unknown).size).toBe(1);
      await alone[Symbol.asyncDispose]();
    }
    await registry[Symbol.asyncDispose]();
  }
});

test("no way of writing its name reaches a hidden tool, nor does its alias [X-D09]", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  await declare(registry, "admin.tool", "roles: admin");
  const viewer: Principal = { id: "key:v", roles: ["viewer"] };
  const { alias } = registry.get("admin.tool", { id: "key:r", roles: ["admin"] }).definition;
  for (const name of ["admin.tool", alias, "ADMIN.TOOL", " admin.tool", "admin.tool ", "admin%2Etool", "__proto__"]) {
    expect(() => registry.acquire(name, viewer)).toThrow(expect.objectContaining({ reason: "TOOL_NOT_FOUND" }));
  }
});

test("a changed rule shows to each watcher as what it is for that watcher, and to others not at all [S2-55]", async () => {
  const folder = await temporaryFolder();
  const { registry } = await startRegistry({ folder });
  await declare(registry, "seen");
  await declare(registry, "tool", "roles: ops");
  const ops: Principal = { id: "key:ops", roles: ["ops"] };
  const sales: Principal = { id: "key:sales", roles: ["sales"] };
  const nobody: Principal = { id: "key:nobody", roles: [] };
  const before = new Map([ops, sales, nobody].map((who) => [who, registry.list(who).revision]));
  const changes = async (who: Principal): Promise<readonly string[]> =>
    (await watched(registry, who, before.get(who))).flatMap((event) => {
      if (event.type === "upserted") return [`+${event.view.definition.name}`];
      return event.type === "removed" ? [`-${event.name}`] : [];
    });
  await declare(registry, "tool", "roles: sales");
  expect(await changes(ops)).toEqual(["-tool"]);
  expect(await changes(sales)).toEqual(["+tool"]);
  expect(await changes(nobody)).toEqual([]);
  expect(registry.list(nobody).revision).toBe(before.get(nobody));
  await registry.unregister(
    { name: "tool", etag: undefined, allowMissing: false },
    { id: "o", roles: ["sales", "operator"] },
    OPEN_END,
  );
  expect(await changes(ops)).toEqual(["-tool"]);
  expect(await changes(sales)).toEqual(["-tool"]);
  expect(await changes(nobody)).toEqual([]);
  expect(registry.list(nobody).revision).toBe(before.get(nobody));
});

test("a principal with other roles than before begins its watch anew, since what it has was for those", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  await declare(registry, "tool", "roles: ops");
  await declare(registry, "open");
  const { revision } = registry.list({ id: "key:a", roles: ["ops"] });
  const events = await watched(registry, { id: "key:a", roles: [] }, revision);
  expect(events.map(({ type }) => type)).toEqual(["reset", "upserted", "synced"]);
});

test("a log that forgets a rule makes those begin anew who may have seen the tool by it", () => {
  const log = new ChangeLog(1_000);
  const first = log.append("tool", "t", false, { roles: ["r0"], subjects: [] });
  for (let n = 1; n < 16; n++) log.append("tool", "t", false, { roles: [`r${n}`], subjects: [] });
  expect(log.covers(first)).toBe(true);
  log.append("tool", "t", false, { roles: ["r16"], subjects: [] });
  expect(log.covers(first)).toBe(false);
});

test("who may not see a registered tool cannot unregister it, and is told that it is not there", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  await declare(registry, "tool", "roles: ops");
  const options = { name: "tool", etag: undefined, allowMissing: false };
  await expect(registry.unregister(options, ANONYMOUS, OPEN_END)).rejects.toMatchObject({ reason: "TOOL_NOT_FOUND" });
  expect(registry.get("tool", { id: "key:o", roles: ["ops"] }).definition.name).toBe("tool");
});

test("who registers what a hidden tool is called learns that the name is not free, and nothing else [X-D09]", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "secret_file.yaml"), declaration("of_file", "a tool", "roles: ops"));
  const { registry } = await startRegistry({ folder });
  await declare(registry, "registered", "roles: ops");
  const viewer: Principal = { id: "key:v", roles: ["publisher"] };
  const told = async (name: string, options: { mustNotExist?: boolean; etag?: string } = {}): Promise<unknown> => {
    const text = declaration(name, "another tool");
    return registry.register({ ...registration(text), ...options }, viewer, OPEN_END).then(
      () => "taken",
      (error: unknown) => {
        const { reason, message, modelMessage, metadata } = GatewayError.from(error);
        return JSON.stringify([reason, message, modelMessage, metadata]).replaceAll(name, "NAME");
      },
    );
  };
  const expected = JSON.stringify([
    "TOOL_EXISTS",
    'the name "NAME" is not free; choose another',
    'the name "NAME" is not free; choose another',
    { tool: "NAME" },
  ]);
  for (const name of ["of_file", "registered"]) {
    expect(await told(name)).toBe(expected);
    expect(await told(name, { mustNotExist: true })).toBe(expected);
    expect(await told(name, { etag: "anything" })).toBe(expected);
  }
  expect(await told("free")).toBe("taken");
});

test("a broken edit leaves the last good version serving with its rule [Y-D10]", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "tool.yaml");
  await writeFile(file, declaration("tool", "good", "roles: ops"));
  const { registry } = await startRegistry({ folder });
  const ops: Principal = { id: "key:ops", roles: ["ops"] };
  await writeFile(file, "name: tool\nroles [ops\n");
  await until(registry, () => registry.list(ANONYMOUS).problems.length > 0);
  expect(registry.list(ops).tools.map(({ definition }) => definition.name)).toEqual(["tool"]);
  expect(registry.list(ANONYMOUS).tools).toEqual([]);
});
