import { mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { RecordFile, type RecordFileLimits, type RecordFileOptions } from "../../src/observability/record-file.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";

const LIMITS: RecordFileLimits = {
  fileBytes: 1_000_000,
  fileAgeMs: 3_600_000,
  retentionMs: 86_400_000,
  maxFiles: 100,
  maxBytes: 100_000_000,
};

interface Opened {
  readonly folder: string;
  readonly clock: FakeClock;
  readonly file: RecordFile;
  readonly troubles: unknown[];
  readonly recoveries: number[];
}

async function open(limits: Partial<RecordFileLimits> = {}, given: Partial<RecordFileOptions> = {}): Promise<Opened> {
  const folder = given.folder ?? (await mkdtemp(join(tmpdir(), "toolgate-records-")));
  const clock = createFakeClock(Date.now());
  const troubles: unknown[] = [];
  const recoveries: number[] = [];
  const file = new RecordFile({
    folder,
    log: "gateway",
    limits: { ...LIMITS, ...limits },
    clock,
    turn: (task) => task(),
    onTrouble: (error) => troubles.push(error),
    onRecovered: (lost) => recoveries.push(lost),
    ...given,
  });
  onTestFinished(async () => {
    await file[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });
  return { folder, clock, file, troubles, recoveries };
}

/** Time passes, and the disk has its turn, until something is so. */
async function until(clock: FakeClock, ms: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
  await expect
    .poll(
      async () => {
        await clock.advance(ms);
        return isSo();
      },
      { timeout: 20_000, interval: 5 },
    )
    .toBe(true);
}

const text = (folder: string): Promise<string> => readFile(join(folder, "gateway.jsonl"), "utf8").catch(() => "");

test("lines are in the file soon, in their order, without anybody waiting for the disk", async () => {
  const { folder, clock, file } = await open();
  for (let i = 0; i < 100; i++) file.write(`{"n":${i}}\n`);
  expect(await readdir(folder)).toEqual([]);
  const all = Array.from({ length: 100 }, (_, i) => `{"n":${i}}\n`).join("");
  await until(clock, 50, async () => (await text(folder)) === all);
});

test("what waits is written when the log is closed", async () => {
  const { folder, file, clock } = await open();
  file.write('{"n":1}\n');
  await file[Symbol.asyncDispose]();
  expect(await text(folder)).toBe('{"n":1}\n');
  expect(file.lost).toBe(0);
  expect(clock.pending).toBe(0);
});

test("files are of bounded size, number and bytes, and no line is torn over two", async () => {
  const { folder, file } = await open({ fileBytes: 2_000, maxFiles: 3, maxBytes: 7_000 });
  for (let i = 0; i < 200; i++) {
    file.write(`${JSON.stringify({ n: i, pad: "x".repeat(80) })}\n`);
  }
  await file[Symbol.asyncDispose]();
  const names = (await readdir(folder)).toSorted();
  expect(names.length).toBeLessThanOrEqual(4);
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  expect(texts.join("").length).toBeLessThanOrEqual(7_000);
  for (const one of texts) {
    expect(one.length).toBeLessThanOrEqual(2_000);
    for (const line of one.trimEnd().split("\n")) expect(() => JSON.parse(line)).not.toThrow();
  }
  expect(texts.join("")).toContain('"n":199');
});

test("a file that is old is closed though nobody writes, and goes when it has been kept long enough", async () => {
  const { folder, file, clock } = await open({ fileAgeMs: 60_000, retentionMs: 600_000 });
  file.write('{"n":1}\n');
  await until(clock, 50, async () => (await text(folder)) !== "");
  await until(clock, 60_000, async () => (await text(folder)) === "");
  const [closed] = await readdir(folder);
  expect(closed).toMatch(/^gateway-\d{4}-.*Z\.jsonl$/);
  await until(clock, 600_000, async () => (await readdir(folder)).length === 0);
});

test("what a crash left half written stays a line of its own", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-records-"));
  await writeFile(join(folder, "gateway.jsonl"), '{"n":1}\n{"n":');
  const { file } = await open({}, { folder });
  file.write('{"n":2}\n');
  await file[Symbol.asyncDispose]();
  expect((await text(folder)).split("\n")).toEqual(['{"n":1}', '{"n":', '{"n":2}', ""]);
});

test("a file that was removed or moved away by somebody else is begun anew", async () => {
  const { folder, file, clock } = await open();
  file.write('{"n":1}\n');
  await until(clock, 50, async () => (await text(folder)) !== "");
  await rm(join(folder, "gateway.jsonl"));
  file.write('{"n":2}\n');
  await until(clock, 50, async () => (await text(folder)) === '{"n":2}\n');
});

test("while a disk is full lines wait, then are lost and counted; when there is room again the log says how many", async () => {
  const { folder, clock, file, troubles, recoveries } = await open();
  await symlink("/dev/full", join(folder, "gateway.jsonl"));
  const line = `${JSON.stringify({ pad: "x".repeat(1_000_000) })}\n`;
  for (let i = 0; i < 10; i++) file.write(line);
  await until(clock, 50, () => troubles.length > 0);
  expect(troubles).toEqual([expect.objectContaining({ code: "ENOSPC" })]);
  expect(file.failing).toBe(true);
  // A bound of some MB.
  expect(file.lost).toBe(6);
  await clock.advance(5_000);
  expect(troubles).toHaveLength(1);
  await rename(join(folder, "gateway.jsonl"), join(folder, "full"));
  await until(clock, 1_000, () => recoveries.length > 0);
  expect(recoveries).toEqual([6]);
  expect(file.failing).toBe(false);
  await file[Symbol.asyncDispose]();
  const names = (await readdir(folder)).filter((name) => name.startsWith("gateway"));
  const texts = await Promise.all(names.toSorted().map((name) => readFile(join(folder, name), "utf8")));
  const told = texts
    .join("")
    .trimEnd()
    .split("\n")
    .map((one) => JSON.parse(one));
  expect(told.filter(({ pad }) => pad !== undefined)).toHaveLength(4);
  expect(told.filter(({ message }) => message === "records-lost")).toEqual([
    expect.objectContaining({ lost: 6, level: "warn", since: expect.any(String) }),
  ]);
});

test("a folder that is no folder is trouble like any other", async () => {
  const parent = await mkdtemp(join(tmpdir(), "toolgate-records-"));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  await writeFile(join(parent, "records"), "");
  const { clock, file, troubles } = await open({}, { folder: join(parent, "records") });
  file.write("{}\n");
  await until(clock, 50, () => troubles.length > 0);
  await file[Symbol.asyncDispose]();
  expect(file.lost).toBe(1);
});
