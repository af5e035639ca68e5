import { randomBytes } from "node:crypto";
import { type FileHandle, mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { KeepOutcome } from "../../src/core/results.ts";
import { ResultFiles, type ResultFilesOptions } from "../../src/stores/result-files.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";

interface Opened {
  readonly store: ResultFiles;
  readonly folder: string;
  readonly clock: FakeClock;
}

async function openStore(options: Partial<ResultFilesOptions> = {}): Promise<Opened> {
  const parent = await mkdtemp(join(tmpdir(), "toolgate-results-"));
  const folder = join(parent, "results");
  const clock = createFakeClock();
  const secrets = { fresh: () => undefined, resolve: () => "0a".repeat(32) };
  const limits = { ttlMs: 60_000, maxBytes: 1_000_000, principalBytes: 400_000 };
  const store = new ResultFiles({
    ...limits,
    folder,
    keyRef: undefined,
    secrets,
    clock,
    logger: silentLogger,
    ...options,
  });
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]();
    await rm(parent, { recursive: true, force: true });
  });
  return { store, folder, clock };
}

interface Kept {
  readonly handle: string;
  readonly outcome: KeepOutcome;
}

async function keep(store: ResultFiles, principal: string, bytes: Uint8Array): Promise<Kept> {
  await using writer = store.create({ principal, tool: "t", mediaType: "text/plain" });
  const whole = await writer.write(bytes);
  return { handle: writer.handle, outcome: await writer.finish(whole) };
}

const who = (id: string) => ({ id, roles: [] });

async function readable(store: ResultFiles, handle: string, principal: string): Promise<string> {
  try {
    await using source = await store.open(handle, who(principal));
    await source.read(0, source.facts.bytes);
    return "read";
  } catch (error) {
    return error instanceof GatewayError ? error.reason : String(error);
  }
}

for (const keyRef of [undefined, "KEY"]) {
  test(`any range of a result of several chunks is what was written (${keyRef === undefined ? "plain" : "sealed"})`, async () => {
    const { store } = await openStore({ keyRef });
    const bytes = randomBytes(200_000);
    const { handle } = await keep(store, "a", bytes);
    await using source = await store.open(handle, who("a"));
    for (const [from, length] of [
      [0, 200_000],
      [65_530, 20],
      [131_072, 1],
      [199_990, 100],
      [200_000, 5],
    ] as const) {
      expect(Buffer.from(await source.read(from, length))).toEqual(bytes.subarray(from, from + length));
    }
  });
}

test("a disk that is full leaves nothing behind, gives no handle and takes no room", async () => {
  const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  const { store, folder } = await openStore({
    async open(path, flags, mode): Promise<FileHandle> {
      const file = await open(path, flags, mode);
      return Object.assign(file, { writeFile: () => Promise.reject(full) });
    },
  });
  for (let i = 0; i < 4; i++) {
    const { outcome, handle } = await keep(store, "a", randomBytes(200_000));
    expect(outcome).toMatchObject({ ok: false, problem: "the gateway cannot write it to its disk" });
    expect(await readable(store, handle, "a")).toBe("RESULT_NOT_FOUND");
  }
  expect((await readdir(folder)).filter((name) => !name.startsWith("index"))).toEqual([]);
});

test("a full store takes from who has most, never from who has less", async () => {
  const { store } = await openStore({ maxBytes: 600_000 });
  const small = await keep(store, "small", randomBytes(50_000));
  const large = [await keep(store, "large", randomBytes(190_000)), await keep(store, "large", randomBytes(190_000))];
  const other = await keep(store, "other", randomBytes(200_000));
  expect(await readable(store, small.handle, "small")).toBe("read");
  expect(await readable(store, other.handle, "other")).toBe("read");
  expect(await readable(store, large[0]?.handle ?? "", "large")).toBe("RESULT_GONE");
  expect(await readable(store, large[1]?.handle ?? "", "large")).toBe("read");
});

test("of what is larger than the quota the beginning is kept, and said to be no more", async () => {
  const { store } = await openStore();
  const { handle, outcome } = await keep(store, "a", randomBytes(1_000_000));
  expect(outcome).toMatchObject({ ok: true, kept: { complete: false } });
  await using source = await store.open(handle, who("a"));
  expect(source.facts.bytes).toBeGreaterThan(300_000);
  expect(source.facts.bytes).toBeLessThanOrEqual(400_000);
});

test("what is over goes from the disk in time, and its handle says so after a restart too", async () => {
  const { store, folder, clock } = await openStore();
  const { handle } = await keep(store, "a", randomBytes(10));
  await clock.advance(60_001);
  expect(await readable(store, handle, "a")).toBe("RESULT_GONE");
  await store[Symbol.asyncDispose]();
  const secrets = { fresh: () => undefined, resolve: () => "" };
  const limits = { ttlMs: 60_000, maxBytes: 1_000, principalBytes: 1_000 };
  await using again = new ResultFiles({ ...limits, folder, keyRef: undefined, secrets, clock, logger: silentLogger });
  expect(await readable(again, handle, "a")).toBe("RESULT_GONE");
  expect(await readable(again, handle, "b")).toBe("RESULT_NOT_FOUND");
  expect(clock.pending).toBe(0);
});

test("a sealed chunk that was moved to another place or cut short is not given out", async () => {
  const { store, folder } = await openStore({ keyRef: "KEY" });
  const { handle } = await keep(store, "a", randomBytes(131_072));
  const path = join(folder, handle.slice("result://".length));
  const bytes = await readFile(path);
  const half = bytes.byteLength / 2;
  await writeFile(path, Buffer.concat([bytes.subarray(half), bytes.subarray(0, half)]));
  expect(await readable(store, handle, "a")).toBe("RESULT_GONE");
  const other = await keep(store, "a", randomBytes(100));
  await writeFile(join(folder, other.handle.slice("result://".length)), "short");
  expect(await readable(store, other.handle, "a")).toBe("RESULT_GONE");
});

test("a folder that cannot be made keeps nothing and breaks nothing", async () => {
  const parent = await mkdtemp(join(tmpdir(), "toolgate-results-"));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  await writeFile(join(parent, "file"), "");
  const { store } = await openStore({ folder: join(parent, "file", "results") });
  await store.start();
  expect((await keep(store, "a", randomBytes(10))).outcome.ok).toBe(false);
});
