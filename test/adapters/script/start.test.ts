import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createFakeClock } from "../../core/fake-clock.ts";
import { call, callOnce, openTool, type ToolOptions, testFolder, textOf } from "./fixture.ts";

/** What is said where a program cannot be started: by a call, in the list and by a probe. */
async function problemOf(options: ToolOptions): Promise<string> {
  await using tool = await openTool(options);
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", retryable: false });
  const message = (error?.message ?? "").replace(/^run_report: /, "");
  expect(tool.availability()).toMatchObject({ state: "unavailable", reason: message });
  const report = await tool.probe(new AbortController().signal);
  expect(report).toMatchObject({ ok: false, message, mend: expect.stringMatching(/\.$/) });
  return message.replace(/^the program cannot be started: /, "");
}

test("a missing folder, a folder that is a file, and a missing program are told apart [S-D10]", async () => {
  await using folder = await testFolder();
  const file = await folder.program("file", "");
  expect(await problemOf({ keys: { command: "ls", cwd: "/srv/none" } })).toBe(
    "its working folder `cwd` /srv/none does not exist",
  );
  expect(await problemOf({ keys: { command: "ls", cwd: file } })).toBe(`its working folder \`cwd\` ${file} is a file`);
  expect(await problemOf({ environment: { PATH: "/bin" }, keys: { command: "no_such_program" } })).toBe(
    "`command` no_such_program is not in PATH (/bin)",
  );
});

test("what else keeps a program from starting is found out [S-D10]", async () => {
  await using folder = await testFolder();
  const at = (command: string): Promise<string> => problemOf({ folder: folder.path, keys: { command } });
  const path = (name: string): string => join(folder.path, name);
  await folder.program("plain.sh", "#!/bin/sh\n", 0o644);
  await folder.program("windows.sh", "#!/bin/sh\r\necho\r\n");
  await folder.program("old.py", "#!/opt/python2/bin/python\n");
  await folder.program("env.rb", "#!/usr/bin/env no_such_ruby\n");
  await mkdir(path("sub"));
  expect(await at("./missing")).toBe(`\`command\` ./missing (${path("missing")}) does not exist`);
  expect(await at("./plain.sh")).toBe(`\`command\` ./plain.sh (${path("plain.sh")}) has no permission to run`);
  expect(await at("./sub")).toBe(`\`command\` ./sub (${path("sub")}) is a folder`);
  expect(await at("./windows.sh")).toContain("the first line of ./windows.sh ends with CR LF");
  expect(await at("./old.py")).toBe(
    "the interpreter /opt/python2/bin/python, which the first line of ./old.py names, cannot be run",
  );
});

test("an interpreter that `env` looks up and does not find is seen before a call [S-D10]", async () => {
  await using folder = await testFolder();
  await folder.program("env.rb", "#!/usr/bin/env no_such_ruby\n");
  await using tool = await openTool({ folder: folder.path, keys: { command: "./env.rb" } });
  expect(tool.availability().reason).toContain("the interpreter no_such_ruby");
});

test("a program that is there again is ready again, and the registry hears of it", async () => {
  await using folder = await testFolder();
  let changes = 0;
  const changed = (): void => void (changes += 1);
  await using tool = await openTool({ folder: folder.path, keys: { command: "./later.sh" }, changed });
  expect(tool.availability().state).toBe("unavailable");
  await folder.program("later.sh", "#!/bin/sh\necho here\n");
  expect((await call(tool)).result?.content).toEqual([{ type: "text", text: "here\n" }]);
  expect(tool.availability()).toEqual({ state: "ready", reason: "" });
  await expect.poll(() => changes).toBe(1);
});

test("a probe starts nothing", async () => {
  await using folder = await testFolder();
  await folder.program("note.sh", "#!/bin/sh\necho ran >> log\n");
  await using tool = await openTool({ folder: folder.path, keys: { command: "./note.sh" } });
  const report = await tool.probe(new AbortController().signal);
  expect(report).toEqual({ ok: true, message: "the program can be started", mend: "" });
  expect(await folder.lines("log")).toEqual([]);
});

test("many processes are refused with an error that says so, and that may be retried [S-D11]", {
  timeout: 180_000,
}, async () => {
  await using tool = await openTool({ keys: { command: "sleep", args: ["600"] } });
  const stop = new AbortController();
  const calls = Array.from({ length: 520 }, () => call(tool, {}, { signal: stop.signal }));
  const refused = await Promise.race(calls);
  expect(refused.error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", retryable: true });
  expect(refused.error?.message).toContain("too many processes");
  stop.abort();
  const outcomes = await Promise.all(calls);
  expect(outcomes.filter(({ error }) => error?.reason === "UPSTREAM_UNREACHABLE")).toHaveLength(8);
});

const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

test.skipIf(!hasPrlimit)(
  "a system that is short of descriptors refuses a call for the moment, and the next ones run [S-D11]",
  { timeout: 180_000 },
  async () => {
    await using tool = await openTool({ keys: { command: "sh", args: ["-c", "echo $PPID; sleep 0.3"] } });
    const launcher = textOf(await call(tool)).trim();
    const openFiles = (): number => readdirSync(`/proc/${launcher}/fd`).length;
    const before = openFiles();
    spawnSync("prlimit", ["--pid", launcher, `--nofile=${before + 40}:${before + 40}`]);
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => call(tool)));
    const refused = outcomes.flatMap(({ error }) => (error === undefined ? [] : [error]));
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(30);
    for (const error of refused) {
      expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", retryable: true });
      expect(error.message).toContain("too many processes or open files (EMFILE)");
    }
    expect((await call(tool)).result?.upstreamCode).toBe(0);
    expect(tool.availability().state).toBe("ready");
    await expect.poll(openFiles).toBe(before);
  },
);

test("limits of time are watched: to the first output, and between two pieces [S2-43]", async () => {
  const clock = createFakeClock();
  const spent = async (script: string, limit: string): Promise<void> => {
    const timeouts = { readMs: 1_000, idleMs: 2_000 };
    await using tool = await openTool({ keys: { command: "sh", args: ["-c", script] }, timeouts, clock });
    const outcome = call(tool);
    const pending = Symbol("pending");
    while ((await Promise.race([outcome, delay(5, pending)])) === pending) await clock.advance(100);
    const { error } = await outcome;
    expect(error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", effect: "unknown", metadata: { limit } });
    expect(error?.message).toContain(`(timeout.${limit}); it may have taken effect`);
  };
  await spent("sleep 600", "read");
  await spent("echo x; sleep 600", "idle");
});

test("a call that may only be checked starts nothing, and its arguments are checked all the same", async () => {
  const options: ToolOptions = { params: { a: { type: "string" } }, keys: { command: "./missing", args: ["{a}"] } };
  const good = await callOnce(options, { a: "x" }, { validateOnly: true });
  expect(good.result).toEqual({ content: [], effect: "none" });
  const bad = await callOnce(options, { a: "-x" }, { validateOnly: true });
  expect(bad.error?.reason).toBe("TEMPLATE_VALUE_REFUSED");
});
