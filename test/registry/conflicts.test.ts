import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RegisterOptions } from "../../src/core/registry.ts";
import {
  ANONYMOUS,
  declaration,
  descriptionOf,
  OPEN_END,
  registration,
  startRegistry,
  temporaryFolder,
  toolNames,
  until,
} from "./support.ts";

test("of two files that declare one name the first serves, the second is reported with the places of both names", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("t", "from a"));
  await writeFile(join(folder, "b.yaml"), `description: from b\nname: t\n`);
  await writeFile(join(folder, "c.yaml"), declaration("other"));
  const { registry, logger } = await startRegistry({ folder });
  expect(toolNames(registry)).toEqual(["other", "t"]);
  expect(descriptionOf(registry, "t")).toBe("from a");
  const message =
    'tool "t" is declared in file:a.yaml:1:1, which came first and has the name; ' +
    "the one in file:b.yaml does not serve until one of the two gets another name";
  expect(registry.list(ANONYMOUS).problems).toEqual([
    { source: "file:b.yaml", line: 2, column: 1, message, lastGoodServing: false, note: false },
  ]);
  expect(logger.lines).toContainEqual(
    expect.objectContaining({ message: "config rejected", fields: expect.objectContaining({ source: "file:b.yaml" }) }),
  );

  await rm(join(folder, "a.yaml"));
  await until(registry, () => descriptionOf(registry, "t") === "from b");
  expect(registry.list(ANONYMOUS).problems).toEqual([]);
});

test("renaming the second one ends a conflict, and the first is not touched by any of it", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("t", "from a"));
  const { registry, adapter } = await startRegistry({ folder });
  const { etag } = registry.get("t", ANONYMOUS).definition;
  await writeFile(join(folder, "b.yaml"), declaration("t", "from b"));
  await until(registry, () => registry.list(ANONYMOUS).problems.length === 1);
  await writeFile(join(folder, "b.yaml"), declaration("u", "from b"));
  await until(registry, () => registry.list(ANONYMOUS).problems.length === 0);
  expect(toolNames(registry)).toEqual(["t", "u"]);
  expect(registry.get("t", ANONYMOUS).definition.etag).toBe(etag);
  expect(adapter.opened.map((upstream) => upstream.disposals)).toEqual([0, 0]);
});

test("two files may swap their names", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("x", "from a"));
  await writeFile(join(folder, "b.yaml"), declaration("y", "from b"));
  const { registry } = await startRegistry({ folder });
  await writeFile(join(folder, "a.yaml"), declaration("y", "from a"));
  await writeFile(join(folder, "b.yaml"), declaration("x", "from b"));
  await until(registry, () => descriptionOf(registry, "x") === "from b" && descriptionOf(registry, "y") === "from a");
  expect(registry.list(ANONYMOUS).problems).toEqual([]);
});

test("a name that a file has cannot be registered; the refusal names the file", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("t", "from a"));
  const { registry } = await startRegistry({ folder });
  const attempt = registry.register(registration(declaration("t", "over the wire")), ANONYMOUS, OPEN_END);
  await expect(attempt).rejects.toMatchObject({
    reason: "TOOL_EXISTS",
    message: 'tool "t" is declared in file:a.yaml; change it there, or choose another name',
    metadata: { tool: "t", source: "file:a.yaml" },
  });
  expect(descriptionOf(registry, "t")).toBe("from a");
});

test("a file that declares a registered name waits until the registration is gone", async () => {
  const folder = await temporaryFolder();
  const { registry } = await startRegistry({ folder });
  await registry.register(registration(declaration("t", "over the wire")), ANONYMOUS, OPEN_END);
  await writeFile(join(folder, "a.yaml"), declaration("t", "from a"));
  await until(registry, () => registry.list(ANONYMOUS).problems.length === 1);
  expect(registry.list(ANONYMOUS).problems[0]).toMatchObject({
    line: 1,
    column: 1,
    message: expect.stringMatching(/^tool "t" was registered over the wire, /),
  });
  const replaced: RegisterOptions = registration(declaration("t", "again"));
  await registry.register(replaced, ANONYMOUS, OPEN_END);
  expect(descriptionOf(registry, "t")).toBe("again");

  await registry.unregister({ name: "t", etag: undefined, allowMissing: false }, ANONYMOUS, OPEN_END);
  expect(descriptionOf(registry, "t")).toBe("from a");
  expect(registry.list(ANONYMOUS).problems).toEqual([]);
  await expect(
    registry.unregister({ name: "t", etag: undefined, allowMissing: true }, ANONYMOUS, OPEN_END),
  ).rejects.toMatchObject({ reason: "TOOL_NOT_REMOVABLE", metadata: { source: "file:a.yaml" } });
});

test("an alias finds its tool, a name wins over an alias, and a contested alias finds nobody", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("a.b", "dotted"));
  const { registry } = await startRegistry({ folder });
  expect(registry.get("a_b", ANONYMOUS).definition.name).toBe("a.b");
  await registry.register(registration(declaration("a-b")), ANONYMOUS, OPEN_END);
  expect(() => registry.get("a_b", ANONYMOUS)).toThrow('no tool "a_b"; did you mean "a-b", "a.b"?');
  const { alias } = registry.get("a.b", ANONYMOUS).definition;
  expect(registry.get(alias, ANONYMOUS).definition.description).toBe("dotted");
  await registry.register(registration(declaration("a_b")), ANONYMOUS, OPEN_END);
  expect(registry.get("a_b", ANONYMOUS).definition.name).toBe("a_b");
});
