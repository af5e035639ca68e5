import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/core/logger.ts";
import type { LedgerStore } from "../../src/core/store.ts";
import { LedgerDatabase } from "../../src/stores/ledger-database.ts";
import { createSqliteLedger } from "../../src/stores/sqlite-ledger.ts";
import { claimOf, LEDGER_LIMITS, ledgerStoreConformance } from "../conformance/ledger-store.ts";
import { createFakeClock } from "../core/fake-clock.ts";

const UNAVAILABLE = { reason: "LEDGER_UNAVAILABLE", status: "UNAVAILABLE", effect: "none", retryable: true };

const ROOMY = { retentionMs: 60_000, maxEntries: 10_000, maxBytes: 1e9 };

/** Path of a ledger that is not there yet. */
async function newFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-ledger-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "ledger", "calls.db");
}

function open(file: string, clock = createFakeClock()): LedgerStore {
  const store = createSqliteLedger({ file, clock, logger: silentLogger, ...LEDGER_LIMITS });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

ledgerStoreConformance(async () => {
  const clock = createFakeClock();
  return { clock, store: open(await newFile(), clock) };
});

test("what was settled is there in the next run, and what was running is unknown", async () => {
  const file = await newFile();
  const first = open(file);
  for (const key of ["answered", "interrupted"]) await first.claim(claimOf(key));
  await first.settle(claimOf("answered"), { state: "committed", outcome: '{"ok":true}' });
  await first[Symbol.asyncDispose]();
  const second = open(file);
  expect(await second.find(claimOf("answered"))).toMatchObject({ state: "committed", outcome: '{"ok":true}' });
  expect(await second.find(claimOf("interrupted"))).toMatchObject({ state: "unknown", callId: "call-interrupted" });
});

test("while another process has the file, operations are refused; once it is free they work", async () => {
  const file = await newFile();
  await mkdir(dirname(file), { recursive: true });
  const other = new LedgerDatabase(file, LEDGER_LIMITS, 0);
  const store = open(file);
  await expect(store.claim(claimOf("k1"))).rejects.toMatchObject(UNAVAILABLE);
  await expect(store.find(claimOf("k1"))).rejects.toMatchObject(UNAVAILABLE);
  other[Symbol.dispose]();
  expect(await store.claim(claimOf("k1"))).toBeUndefined();
});

test("a file that is no ledger is refused and left as it is", async () => {
  const file = await newFile();
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, "not a database, ".repeat(100));
  const store = open(file);
  await expect(store.claim(claimOf("k1"))).rejects.toMatchObject(UNAVAILABLE);
  await rm(file);
  expect(await store.claim(claimOf("k1"))).toBeUndefined();
});

test("the ledger of a newer gateway is left alone", async () => {
  const file = await newFile();
  await mkdir(dirname(file), { recursive: true });
  const newer = new Database(file);
  newer.pragma("user_version = 99");
  newer.close();
  await expect(open(file).find(claimOf("k1"))).rejects.toMatchObject(UNAVAILABLE);
});

test("a folder that cannot be made refuses operations", async () => {
  const file = await newFile();
  await mkdir(dirname(dirname(file)), { recursive: true });
  await writeFile(dirname(file), "a file where the folder should be");
  await expect(open(file).claim(claimOf("k1"))).rejects.toMatchObject(UNAVAILABLE);
});

test("a full disk fails what does not fit, changes nothing, and goes on with what does", async () => {
  const file = await newFile();
  using database = new LedgerDatabase(file, ROOMY, 0);
  const claim = claimOf("k1");
  database.run([{ type: "claim", claim }], 1);
  database.limitPages(20);
  const large = { state: "committed", outcome: "x".repeat(1_000_000) } as const;
  expect(() => database.run([{ type: "settle", claim, settlement: large }], 1)).toThrow(/full/);
  expect(database.run([{ type: "find", key: claim }], 1)).toMatchObject([{ entry: { state: "running" } }]);
  database.run([{ type: "settle", claim, settlement: { state: "committed", outcome: "{}" } }], 1);
  expect(database.run([{ type: "find", key: claim }], 1)).toMatchObject([{ entry: { outcome: "{}" } }]);
});

test("a closed ledger refuses operations, and closing it twice does no harm", async () => {
  const store = open(await newFile());
  await store.claim(claimOf("k1"));
  await Promise.all([store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()]);
  await expect(store.find(claimOf("k1"))).rejects.toMatchObject(UNAVAILABLE);
});

test("old entries are forgotten for good, a few at a time", async () => {
  const file = await newFile();
  using database = new LedgerDatabase(file, ROOMY, 0);
  const claims = Array.from({ length: 1_200 }, (_, i) => claimOf(`k${i}`, { timeMs: i }));
  database.run(
    claims.map((claim) => ({ type: "settle", claim, settlement: { state: "unknown" } }) as const),
    1,
  );
  for (const left of [700, 200, 0]) {
    database.tidy(61_200);
    expect(database.entries).toBe(left);
  }
});
