import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { lockFolder } from "../../src/stores/folder-lock.ts";
import { createFakeClock } from "../core/fake-clock.ts";

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-lock-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A process that holds the lock of a folder until it is killed. */
async function holder(folder: string) {
  const child = spawn(process.execPath, ["test/stores/hold-lock.ts", folder], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

const inUse = (folder: string, pid: number | undefined) => ({
  reason: "STORE_FAILED",
  message:
    `state folder ${folder} is in use by another gateway (process ${pid}): stop that one, or give this one a folder ` +
    "of its own with --state or `state.folder` in gateway.yaml",
});

test("a folder has one holder at a time, and is free after it", async () => {
  const folder = join(await temporaryFolder(), "state");
  const lock = await lockFolder(folder, systemClock);
  await expect(lockFolder(folder, systemClock)).rejects.toMatchObject(inUse(folder, process.pid));
  await lock?.[Symbol.asyncDispose]();
  expect(await readdir(folder)).toEqual([]);
  await using again = await lockFolder(folder, systemClock);
  expect(again).toBeDefined();
});

test("another process that holds it is named; killed by SIGKILL, it holds it no longer", async () => {
  const folder = await temporaryFolder();
  const child = await holder(folder);
  await expect(lockFolder(folder, systemClock)).rejects.toMatchObject(inUse(folder, child.pid));
  child.kill("SIGKILL");
  await once(child, "exit");
  await using lock = await lockFolder(folder, systemClock);
  expect(lock).toBeDefined();
  expect(JSON.parse(await readFile(join(folder, "gateway.lock"), "utf8"))).toMatchObject({ pid: process.pid });
});

test("of many that find a dead holder's lock one gets it", async () => {
  const folder = await temporaryFolder();
  const child = await holder(folder);
  child.kill("SIGKILL");
  await once(child, "exit");
  const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => lockFolder(folder, systemClock)));
  const taken = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
  expect(taken).toHaveLength(1);
  await taken[0]?.[Symbol.asyncDispose]();
  expect(await readdir(folder)).toEqual([]);
});

test.for([
  ["of another machine", { token: "t", host: "elsewhere", pid: 1, since: "b s 1" }],
  ["written in part", undefined],
] as const)("a lock %s counts while it is fresh, and no longer", async ([, lock]) => {
  const folder = await temporaryFolder();
  const path = join(folder, "gateway.lock");
  await writeFile(path, lock === undefined ? '{"tok' : JSON.stringify(lock));
  await expect(lockFolder(folder, systemClock)).rejects.toMatchObject({ reason: "STORE_FAILED" });
  const old = new Date(Date.now() - 31_000);
  await utimes(path, old, old);
  await using taken = await lockFolder(folder, systemClock);
  expect(taken).toBeDefined();
});

test("a holder shows every five seconds that it lives, and leaves a lock that another took over", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "gateway.lock");
  const clock = createFakeClock();
  const lock = await lockFolder(folder, clock);
  await utimes(path, new Date(0), new Date(0));
  await clock.advance(5_000);
  await expect.poll(async () => (await stat(path)).mtimeMs).toBeGreaterThan(1e12);
  await writeFile(path, JSON.stringify({ token: "another", host: "elsewhere", pid: 1, since: "" }));
  await lock?.[Symbol.asyncDispose]();
  expect(clock.pending).toBe(0);
  expect(await readFile(path, "utf8")).toContain("another");
});

test.skipIf(process.getuid?.() === 0)("a folder that cannot be written to needs no lock", async () => {
  const folder = join(await temporaryFolder(), "state");
  await mkdir(folder);
  await chmod(folder, 0o500);
  expect(await lockFolder(folder, systemClock)).toBeUndefined();
});
