import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { EventLog } from "../../src/ledger/event-log.ts";
import { createSpillFiles } from "../../src/stores/spill-files.ts";
import { createRandom } from "../core/random.ts";
import { createFakeDisk, textLog } from "./fixtures.ts";

async function append(log: EventLog<string>, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    log.append(text);
    await log.settle();
  }
}

async function all(log: EventLog<string>): Promise<(string | undefined)[]> {
  const texts: (string | undefined)[] = [];
  for (let sequence = log.first; sequence < log.next; sequence++) texts.push(await log.at(sequence));
  return texts;
}

const texts = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `event ${String(from + i).padStart(4, "0")}`);

test("events are numbered from 1 and come back by their number", async () => {
  const log = textLog({ memoryBytes: 1_000, diskBytes: 1_000 });
  expect([log.first, log.next]).toEqual([1, 1]);
  expect([log.append("a"), log.append("b")]).toEqual([1, 2]);
  expect([log.first, log.next, log.at(1), log.at(2)]).toEqual([1, 3, "a", "b"]);
});

test("what memory is too small for goes to disk and comes back, in order", async () => {
  const log = textLog({ memoryBytes: 100, diskBytes: 100_000 });
  await append(log, ...texts(1, 500));
  expect(log.first).toBe(1);
  expect(await all(log)).toEqual(texts(1, 500));
});

test("over both limits the oldest is dropped, and the disk takes no more than its limit", async () => {
  const disk = createFakeDisk();
  const log = textLog({ memoryBytes: 100, diskBytes: 1_000 }, disk);
  for (let i = 1; i <= 2_000; i++) {
    await append(log, ...texts(i, i));
    if (i % 97 === 0) expect(await all(log)).toEqual(texts(log.first, i));
  }
  expect(log.next - log.first).toBeGreaterThan(50);
  expect(disk.files.map(({ size }) => size <= 1_000)).toEqual([true]);
});

test("events of any size keep their order and their limits", async () => {
  const random = createRandom(20_261_130);
  const disk = createFakeDisk();
  const log = textLog({ memoryBytes: 500, diskBytes: 3_000 }, disk);
  const told: string[] = [""];
  for (let i = 1; i <= 1_000; i++) {
    const text = `${i} ${"x".repeat(Math.floor(random() ** 4 * 4_000))}`;
    told.push(text);
    await append(log, text);
    const sequence = log.first + Math.floor(random() * (log.next - log.first));
    expect(await log.at(sequence)).toBe(told[sequence]);
  }
  expect(disk.files[0]?.size).toBeLessThanOrEqual(3_000);
});

test("the last event stays in memory however large it is", async () => {
  const log = textLog({ memoryBytes: 10, diskBytes: 10 });
  await append(log, "small", "x".repeat(10_000));
  expect(await log.at(2)).toHaveLength(10_000);
});

test("a disk that fails drops what it does not take, and the log goes on", async () => {
  const disk = createFakeDisk();
  const log = textLog({ memoryBytes: 100, diskBytes: 10_000 }, disk);
  await append(log, ...texts(1, 50));
  disk.broken = true;
  await append(log, ...texts(51, 100));
  expect(log.first).toBeGreaterThan(85);
  expect(await all(log)).toEqual(texts(log.first, 100));
  disk.broken = false;
  await append(log, ...texts(101, 150));
  expect(await all(log)).toEqual(texts(log.first, 150));
});

test("what a disk does not give back, or gives back broken, is not kept, and is no fault of the call", async () => {
  for (const read of [async () => Promise.reject(new Error("EIO")), async () => Buffer.alloc(1_000, "?")]) {
    const disk = createFakeDisk();
    const broken = { ...disk, open: async () => ({ ...(await disk.open()), read }) };
    const log = textLog({ memoryBytes: 100, diskBytes: 10_000 }, broken);
    await append(log, ...texts(1, 50));
    expect(await log.at(1)).toBeUndefined();
    expect(await log.at(50)).toBe("event 0050");
  }
});

test("disposing frees the disk, and twice does no harm", async () => {
  const disk = createFakeDisk();
  const log = textLog({ memoryBytes: 100, diskBytes: 10_000 }, disk);
  await append(log, ...texts(1, 50));
  expect(disk.open_).toBe(1);
  await Promise.all([log[Symbol.asyncDispose](), log[Symbol.asyncDispose]()]);
  expect(disk.open_).toBe(0);
});

test("output on a real disk comes back, leftovers of an earlier run go, and nothing is left", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-spill-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "0.stream"), "of an earlier run");
  const spill = createSpillFiles(folder);
  const logs = [
    textLog({ memoryBytes: 100, diskBytes: 5_000 }, spill),
    textLog({ memoryBytes: 100, diskBytes: 5_000 }, spill),
  ];
  await Promise.all(logs.map((log) => append(log, ...texts(1, 200))));
  for (const log of logs) expect(await all(log)).toEqual(texts(log.first, 200));
  expect(await readdir(folder)).toHaveLength(2);
  await logs[0]?.[Symbol.asyncDispose]();
  expect(await readdir(folder)).toHaveLength(1);
  await spill[Symbol.asyncDispose]();
  await expect(readdir(folder)).rejects.toMatchObject({ code: "ENOENT" });
});
