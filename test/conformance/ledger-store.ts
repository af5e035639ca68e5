import { expect, test } from "vitest";
import type { LedgerClaim, LedgerStore } from "../../src/core/store.ts";
import type { FakeClock } from "../core/fake-clock.ts";

/** Limits of the ledgers that the suite examines. */
export const LEDGER_LIMITS = { retentionMs: 60_000, maxEntries: 5, maxBytes: 1_000 } as const;

/** A ledger to examine, with {@link LEDGER_LIMITS}. */
export interface LedgerFixture {
  readonly store: LedgerStore;
  readonly clock: FakeClock;
}

/** A claim of one call. */
export function claimOf(key: string, more: Partial<LedgerClaim> = {}): LedgerClaim {
  return { principal: "anonymous", tool: "refund", key, digest: "d", callId: `call-${key}`, timeMs: 0, ...more };
}

/** What every ledger does. To be called at the top of a test file. */
export function ledgerStoreConformance(makeLedger: () => Promise<LedgerFixture>): void {
  test("a key is nobody's, then claimed, then settled with its outcome", async () => {
    const { store, clock } = await makeLedger();
    const claim = claimOf("k1", { timeMs: clock.now() });
    expect(await store.find(claim)).toBeUndefined();
    expect(await store.claim(claim)).toBeUndefined();
    expect(await store.find(claim)).toMatchObject({ state: "running", digest: "d", callId: "call-k1" });
    await store.settle(claim, { state: "committed", outcome: '{"n":871234567890123457,"t":"退款\\u0000"}' });
    expect(await store.find(claim)).toEqual({
      state: "committed",
      digest: "d",
      callId: "call-k1",
      timeMs: clock.now(),
      outcome: '{"n":871234567890123457,"t":"退款\\u0000"}',
    });
  });

  test("a claim that stands is not replaced but by who names it", async () => {
    const { store } = await makeLedger();
    await store.claim(claimOf("k1"));
    const second = claimOf("k1", { callId: "second", digest: "other" });
    expect(await store.claim(second)).toMatchObject({ state: "running", callId: "call-k1", digest: "d" });
    expect(await store.claim({ ...second, over: "call-k1" })).toBeUndefined();
    expect(await store.find(second)).toMatchObject({ callId: "second", digest: "other" });
  });

  test("of many claims of one key at once, one is granted", async () => {
    const { store } = await makeLedger();
    const claims = Array.from({ length: 20 }, (_, i) => store.claim(claimOf("k1", { callId: `call-${i}` })));
    expect((await Promise.all(claims)).filter((entry) => entry === undefined)).toHaveLength(1);
  });

  test("principal, tool and key each tell calls apart", async () => {
    const { store } = await makeLedger();
    await store.claim(claimOf("k1"));
    for (const other of [{ principal: "p2" }, { tool: "t2" }, { key: "k2" }]) {
      expect(await store.find(claimOf("k1", other))).toBeUndefined();
    }
    // No two of them run together into the same text.
    await store.claim(claimOf("c", { principal: "a", tool: "b" }));
    expect(await store.find({ principal: "a", tool: "", key: "bc" })).toBeUndefined();
  });

  test("what had no effect is forgotten, and what is unknown is not", async () => {
    const { store } = await makeLedger();
    for (const key of ["gone", "lost"]) await store.claim(claimOf(key));
    await store.settle(claimOf("gone"), { state: "failed-no-effect" });
    await store.settle(claimOf("lost"), { state: "unknown" });
    expect(await store.find(claimOf("gone"))).toBeUndefined();
    expect(await store.find(claimOf("lost"))).toMatchObject({ state: "unknown" });
  });

  test("a call that was not claimed can be settled", async () => {
    const { store } = await makeLedger();
    await store.settle(claimOf("read"), { state: "committed", outcome: "{}" });
    expect(await store.find(claimOf("read"))).toMatchObject({ state: "committed", outcome: "{}" });
  });

  test("an entry is there until its time is over, counted from the end of its call; one that runs stays", async () => {
    const { store, clock } = await makeLedger();
    for (const key of ["ended", "running"]) await store.claim(claimOf(key, { timeMs: clock.now() }));
    await clock.advance(30_000);
    await store.settle(claimOf("ended"), { state: "committed", outcome: "{}" });
    await clock.advance(LEDGER_LIMITS.retentionMs - 1);
    expect(await store.find(claimOf("ended"))).toBeDefined();
    await clock.advance(1);
    expect(await store.find(claimOf("ended"))).toBeUndefined();
    expect(await store.find(claimOf("running"))).toBeDefined();
    expect(await store.claim(claimOf("ended", { callId: "again" }))).toBeUndefined();
  });

  test("a full ledger refuses a new key and gives up none; there is room again when entries are too old", async () => {
    const { store, clock } = await makeLedger();
    const keys = Array.from({ length: LEDGER_LIMITS.maxEntries }, (_, i) => `k${i}`);
    for (const key of keys) {
      await store.claim(claimOf(key, { timeMs: clock.now() }));
      await store.settle(claimOf(key), { state: "committed", outcome: "{}" });
    }
    await expect(store.claim(claimOf("more"))).rejects.toMatchObject({ reason: "LEDGER_FULL", effect: "none" });
    for (const key of keys) expect(await store.find(claimOf(key))).toMatchObject({ outcome: "{}" });
    await clock.advance(LEDGER_LIMITS.retentionMs);
    expect(await store.claim(claimOf("more"))).toBeUndefined();
  });

  test("over the limit of bytes the oldest outcomes go, and their calls stay known", async () => {
    const { store, clock } = await makeLedger();
    for (const key of ["k1", "k2", "k3"]) {
      await clock.advance(1);
      await store.claim(claimOf(key, { timeMs: clock.now() }));
      await store.settle(claimOf(key), { state: "committed", outcome: "x".repeat(400) });
    }
    await expect.poll(async () => (await store.find(claimOf("k1")))?.outcome, { timeout: 10_000 }).toBeUndefined();
    expect(await store.find(claimOf("k1"))).toMatchObject({ state: "committed" });
    expect((await store.find(claimOf("k3")))?.outcome).toHaveLength(400);
  });
}
