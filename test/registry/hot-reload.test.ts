import { appendFileSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import type { DeclarationProblem } from "../../src/core/registry.ts";
import type { Registry } from "../../src/registry/tool-registry.ts";
import {
  ANONYMOUS,
  callContext,
  callTool,
  declaration,
  descriptionOf,
  OPEN_END,
  readEvents,
  startRegistry,
  temporaryFolder,
  textOf,
  toolCall,
  toolNames,
  until,
} from "./support.ts";

/** What is promised between a write and the first call that can use it. */
const PROMISE_MS = 3_000;

function problems(registry: Registry): readonly DeclarationProblem[] {
  return registry.list(ANONYMOUS).problems;
}

test.concurrent("a file dropped into the folder is a tool that can be called, and its removal ends it [S2-20]", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  const { registry } = await startRegistry({ folder, finish });
  expect(toolNames(registry)).toEqual([]);
  await writeFile(join(folder, "a.yaml"), declaration("a", "first"));
  await until(registry, () => toolNames(registry).includes("a"));
  expect(await callTool(registry, "a")).toBe("first");
  await rm(join(folder, "a.yaml"));
  await until(registry, () => toolNames(registry).length === 0);
});

test("each of 50 writes is callable within 3 s [S2-33]", { timeout: 240_000 }, async () => {
  const folder = await temporaryFolder();
  const { registry } = await startRegistry({ folder });
  const times: number[] = [];
  for (let write = 0; write < 50; write++) {
    const started = performance.now();
    await writeFile(join(folder, "a.yaml"), declaration("a", `version ${write}`));
    await until(registry, () => descriptionOf(registry, "a") === `version ${write}`);
    expect(await callTool(registry, "a")).toBe(`version ${write}`);
    times.push(performance.now() - started);
  }
  times.sort((a, b) => a - b);
  console.log(`write to call: p50 ${Math.round(times[25] ?? 0)} ms, p100 ${Math.round(times.at(-1) ?? 0)} ms`);
  // One of ten may wait for a machine that is busy with other things.
  expect(times[44]).toBeLessThan(PROMISE_MS);
});

test.concurrent("a call in flight ends on the version it began with [S2-19]", async ({ onTestFinished: finish }) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "a.yaml"), declaration("a", "old"));
  const { registry, adapter } = await startRegistry({ folder, finish });
  const lease = registry.acquire("a", ANONYMOUS);
  await writeFile(join(folder, "a.yaml"), declaration("a", "new"));
  await until(registry, () => descriptionOf(registry, "a") === "new");
  expect(await callTool(registry, "a")).toBe("new");
  expect(adapter.opened[0]?.disposals).toBe(0);
  expect(lease.definition.description).toBe("old");
  expect(await textOf(lease.run(toolCall("a"), callContext()))).toBe("old");
  lease[Symbol.dispose]();
  lease[Symbol.dispose]();
  expect(adapter.opened.map((upstream) => upstream.disposals)).toEqual([1, 0]);
});

test.concurrent("a broken edit is reported while the last good version serves, and mending it clears the report [Y-D10]", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  const file = join(folder, "a.yaml");
  await writeFile(file, declaration("a", "good"));
  const { registry } = await startRegistry({ folder, finish });
  await writeFile(file, "name: a\nallowed_roles [ops\n");
  await until(registry, () => problems(registry).length > 0);
  expect(problems(registry)).toEqual([
    {
      source: "file:a.yaml",
      line: 2,
      column: 1,
      message: 'cannot read "allowed_roles [ops"; write key: value',
      lastGoodServing: true,
      note: false,
    },
  ]);
  expect(await callTool(registry, "a")).toBe("good");
  await writeFile(file, declaration("a", "better"));
  await until(registry, () => problems(registry).length === 0);
  expect(await callTool(registry, "a")).toBe("better");
});

test.concurrent("a broken file at the start is reported and its tool is absent [Y-D10]", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "a.yaml"), "name: a\nallowed_roles [ops\n");
  const { registry } = await startRegistry({ folder, finish });
  expect(toolNames(registry)).toEqual([]);
  expect(problems(registry)).toMatchObject([{ source: "file:a.yaml", line: 2, lastGoodServing: false }]);
});

test.concurrent("half a file that would be valid never becomes a tool [Y-D11]", async ({ onTestFinished: finish }) => {
  const folder = await temporaryFolder(finish);
  const { registry } = await startRegistry({ folder, finish });
  const from = registry.list(ANONYMOUS).revision;
  const file = join(folder, "t.yaml");
  writeFileSync(file, "name: t\ndescription: http://127.0.0.1:1/ord");
  await delay(300);
  // In one go, so that load cannot make the gap longer than the gateway's own timers see it.
  appendFileSync(file, "ers/1\n");
  await until(registry, () => descriptionOf(registry, "t") !== undefined);
  const events = await readEvents(registry.watch(from, ANONYMOUS, OPEN_END), (event) => event.type === "synced");
  expect(events.filter((event) => event.type === "upserted")).toHaveLength(1);
  expect(descriptionOf(registry, "t")).toBe("http://127.0.0.1:1/orders/1");
});

test.concurrent.for([
  { how: "renames over", gapMs: undefined },
  { how: "deletes first", gapMs: 350 },
])(
  "a save that $how shows each version and never loses the tool [Y-D12]",
  { timeout: 180_000 },
  async ({ gapMs }, { onTestFinished: finish }) => {
    const folder = await temporaryFolder(finish);
    const file = join(folder, "t.yaml");
    await writeFile(file, declaration("t", "version 0"));
    const { registry } = await startRegistry({ folder, finish });
    const stop = new AbortController();
    const calling = (async () => {
      let calls = 0;
      for (; !stop.signal.aborted; calls++) {
        await callTool(registry, "t");
        await delay(10);
      }
      return calls;
    })();
    for (let version = 1; version <= 5; version++) {
      const text = declaration("t", `version ${version}`);
      if (gapMs === undefined) {
        await writeFile(join(folder, ".t.tmp"), text);
        await rename(join(folder, ".t.tmp"), file);
      } else {
        await rm(file);
        await delay(gapMs);
        // In one go, so that load cannot make the gap longer than the gateway's own timers see it.
        writeFileSync(file, text);
      }
      await until(registry, () => descriptionOf(registry, "t") === `version ${version}`);
    }
    stop.abort();
    expect(await calling).toBeGreaterThan(10);
  },
);

test.concurrent.for(["auto", "always"] as const)(
  "the swap of a mounted ConfigMap is one change of one tool, poll: %s [Y-D13]",
  async (poll, { onTestFinished: finish }) => {
    const folder = await temporaryFolder(finish);
    const write = async (version: number): Promise<void> => {
      await mkdir(join(folder, `..v${version}`));
      await writeFile(join(folder, `..v${version}`, "t.yaml"), declaration("t", `version ${version}`));
    };
    await write(1);
    await symlink("..v1", join(folder, "..data"));
    await symlink("..data/t.yaml", join(folder, "t.yaml"));
    const { registry } = await startRegistry({ folder, finish, tools: { poll, pollIntervalMs: 200 } });
    const from = registry.list(ANONYMOUS).revision;
    for (const version of [2, 3]) {
      await write(version);
      await symlink(`..v${version}`, join(folder, "..data_tmp"));
      await rename(join(folder, "..data_tmp"), join(folder, "..data"));
      await rm(join(folder, `..v${version - 1}`), { recursive: true });
      await until(registry, () => descriptionOf(registry, "t") === `version ${version}`);
      expect(toolNames(registry)).toEqual(["t"]);
    }
    const events = await readEvents(registry.watch(from, ANONYMOUS, OPEN_END), (event) => event.type === "synced");
    expect(events.map((event) => event.type)).toEqual(["upserted", "synced"]);
    expect(problems(registry)).toEqual([]);
  },
);

test.concurrent("a broken file beside ten good ones stays in the list of problems when an eleventh comes [Y-D16]", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  for (let n = 0; n < 10; n++) await writeFile(join(folder, `t${n}.yaml`), declaration(`t${n}`));
  await writeFile(join(folder, "broken.yaml"), "what is this\n");
  const { registry } = await startRegistry({ folder, finish });
  await writeFile(join(folder, "t10.yaml"), declaration("t10"));
  await until(registry, () => toolNames(registry).length === 11);
  const reported = problems(registry).map((problem) => `${problem.source}:${problem.line}: ${problem.message}`);
  expect(reported).toEqual([
    'file:broken.yaml:1: cannot read "what is this"; write key: value',
    "file:broken.yaml:1: `name` is missing",
  ]);
  expect(await registry.diagnose(OPEN_END)).toContainEqual(
    expect.objectContaining({ subject: "file:broken.yaml", status: "failed" }),
  );
});

test.concurrent("a file that no include rule matches is ignored, with a note that names the rules [S2-122]", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "a.yaml"), declaration("a"));
  await writeFile(join(folder, "a.yml"), declaration("b"));
  for (const name of [".a.yaml.swp", "a.yaml~", "4913", "#a.yaml#", ".hidden.yaml", "a.yaml.tmp"]) {
    await writeFile(join(folder, name), declaration("c"));
  }
  const { registry } = await startRegistry({ folder, finish, tools: { include: ["*.yaml", "team/**/*.yaml"] } });
  expect(toolNames(registry)).toEqual(["a"]);
  expect(problems(registry)).toMatchObject([{ source: "file:a.yml", note: true }]);
  expect(problems(registry)[0]?.message).toContain(
    'ignored: no include rule matches (tools.include: "*.yaml", "team/**/*.yaml")',
  );
  await rename(join(folder, "a.yml"), join(folder, "b.yaml"));
  await until(registry, () => problems(registry).length === 0);
  expect(toolNames(registry)).toEqual(["a", "b"]);
});

test.concurrent("the log says `config reloaded` with what changed and `config rejected` with the place [S2-123]", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "a.yaml"), declaration("a"));
  const { registry, logger } = await startRegistry({ folder, finish });
  await writeFile(join(folder, "b.yaml"), declaration("b"));
  await until(registry, () => toolNames(registry).length === 2);
  await writeFile(join(folder, "a.yaml"), declaration("a", "changed"));
  await until(registry, () => descriptionOf(registry, "a") === "changed");
  await writeFile(join(folder, "a.yaml"), "name a\n");
  await until(registry, () => problems(registry).length > 0);
  await rm(join(folder, "b.yaml"));
  await until(registry, () => toolNames(registry).length === 1);
  const ms = expect.any(Number);
  const said = logger.lines.filter((line) => line.message.startsWith("config "));
  expect(said).toEqual([
    {
      level: "info",
      message: "config reloaded",
      fields: { source: "file:a.yaml", added: ["a"], changed: [], removed: [], ms },
    },
    {
      level: "info",
      message: "config reloaded",
      fields: { source: "file:b.yaml", added: ["b"], changed: [], removed: [], ms },
    },
    {
      level: "info",
      message: "config reloaded",
      fields: { source: "file:a.yaml", added: [], changed: ["a"], removed: [], ms },
    },
    {
      level: "error",
      message: "config rejected",
      fields: {
        source: "file:a.yaml",
        line: 1,
        column: 1,
        problem: 'cannot read "name a"; write key: value',
        lastGoodServing: true,
      },
    },
    {
      level: "error",
      message: "config rejected",
      fields: { source: "file:a.yaml", line: 1, column: 1, problem: "`name` is missing", lastGoodServing: true },
    },
    {
      level: "info",
      message: "config reloaded",
      fields: { source: "file:b.yaml", added: [], changed: [], removed: ["b"], ms },
    },
  ]);
});

test.concurrent.for(["auto", "always"] as const)(
  "a folder may come later, go, and come back, poll: %s",
  { timeout: 240_000 },
  async (poll, { onTestFinished: finish }) => {
    const folder = join(await temporaryFolder(finish), "tools");
    const { registry } = await startRegistry({ folder, finish, tools: { poll, pollIntervalMs: 200 } });
    expect(problems(registry)).toMatchObject([
      { source: "file:./", message: `the tools folder ${folder} does not exist: create it, or set tools.folder` },
    ]);
    for (const round of ["first", "second"]) {
      await mkdir(join(folder, "sub"), { recursive: true });
      await writeFile(join(folder, "sub", "a.yaml"), declaration("a", round));
      await until(registry, () => descriptionOf(registry, "a") === round);
      // A file may be found by its own event before the look at the whole folder has come to its end.
      await until(registry, () => problems(registry).length === 0);
      // Events of the new folder arrive too, not only what polling finds.
      await writeFile(join(folder, "sub", "a.yaml"), declaration("a", `${round} changed`));
      await until(registry, () => descriptionOf(registry, "a") === `${round} changed`);
      await rm(folder, { recursive: true });
      await until(registry, () => toolNames(registry).length === 0);
      await until(registry, () => problems(registry).length === 1);
    }
  },
);

test.concurrent("a folder that is replaced at once loses no tool in between", async ({ onTestFinished: finish }) => {
  const folder = join(await temporaryFolder(finish), "tools");
  await mkdir(folder);
  await writeFile(join(folder, "a.yaml"), declaration("a", "old"));
  const { registry } = await startRegistry({ folder, finish, tools: { pollIntervalMs: 100 } });
  const from = registry.list(ANONYMOUS).revision;
  await mkdir(`${folder}-next`);
  await writeFile(join(`${folder}-next`, "a.yaml"), declaration("a", "new"));
  await rename(folder, `${folder}-old`);
  await rename(`${folder}-next`, folder);
  await until(registry, () => descriptionOf(registry, "a") === "new");
  const events = await readEvents(registry.watch(from, ANONYMOUS, OPEN_END), (event) => event.type === "synced");
  expect(events.map((event) => event.type)).not.toContain("removed");
});

test.concurrent("a renamed file keeps its tool, and nothing is reported in between", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "a.yaml"), declaration("t", "same"));
  const { registry, adapter, logger } = await startRegistry({ folder, finish });
  await rename(join(folder, "a.yaml"), join(folder, "b.yaml"));
  await until(registry, () => registry.get("t", ANONYMOUS).definition.source === "file:b.yaml");
  expect(problems(registry)).toEqual([]);
  expect(logger.lines.map((line) => line.message)).not.toContain("config rejected");
  expect(adapter.opened).toHaveLength(1);
});

test.concurrent("a file that never rests is read after a bound", async ({ onTestFinished: finish }) => {
  const folder = await temporaryFolder(finish);
  const { registry } = await startRegistry({ folder, finish });
  const file = join(folder, "a.yaml");
  await writeFile(file, declaration("a"));
  const stop = new AbortController();
  const writing = (async () => {
    while (!stop.signal.aborted) {
      await appendFile(file, "# and more\n");
      await delay(20);
    }
  })();
  await until(registry, () => toolNames(registry).length === 1, 8_000);
  expect(stop.signal.aborted).toBe(false);
  stop.abort();
  await writing;
});

test.concurrent("content that did not change is not parsed again", async ({ onTestFinished: finish }) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "a.yaml"), declaration("a"));
  const { registry, parsed } = await startRegistry({ folder, finish });
  await writeFile(join(folder, "a.yaml"), declaration("a"));
  await writeFile(join(folder, "b.yaml"), declaration("b"));
  await until(registry, () => toolNames(registry).length === 2);
  expect(parsed).toEqual(["file:a.yaml", "file:b.yaml"]);
});

test.concurrent("empty, oversized, binary and unreachable files are problems that say the mend, and harm no other", async ({
  onTestFinished: finish,
}) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "empty.yaml"), "");
  await writeFile(join(folder, "large.yaml"), "#".repeat(1024 * 1024 + 1));
  await writeFile(join(folder, "latin.yaml"), Buffer.from([0x6e, 0xe9, 0x0a]));
  await symlink("loop.yaml", join(folder, "loop.yaml"));
  await writeFile(join(folder, "good.yaml"), declaration("good"));
  const { registry } = await startRegistry({ folder, finish });
  expect(toolNames(registry)).toEqual(["good"]);
  expect(problems(registry).map((problem) => `${problem.source} ${problem.message}`)).toEqual([
    "file:empty.yaml is empty: write a declaration or delete it",
    "file:large.yaml has 1048577 bytes, at most 1048576 are allowed: shorten it",
    "file:latin.yaml is no UTF-8 text: save it as UTF-8",
    "file:loop.yaml cannot be read (ELOOP): its symbolic links lead in a circle",
  ]);
  await writeFile(join(folder, "good.yaml"), "");
  await until(registry, () => problems(registry).some((problem) => problem.source === "file:good.yaml"));
  expect(problems(registry)).toContainEqual(
    expect.objectContaining({ source: "file:good.yaml", lastGoodServing: true }),
  );
  expect(await callTool(registry, "good")).toBe("");
});

test.concurrent("a byte order mark is no part of a declaration", async ({ onTestFinished: finish }) => {
  const folder = await temporaryFolder(finish);
  await writeFile(join(folder, "a.yaml"), `\uFEFF${declaration("a")}`);
  const { registry } = await startRegistry({ folder, finish });
  expect(toolNames(registry)).toEqual(["a"]);
});
