import type { Clock } from "../core/clock.ts";
import type { LedgerClaim, LedgerEntry, LedgerKey, LedgerStore } from "../core/store.ts";
import { ledgerFull } from "./ledger-full.ts";

/** What a ledger in memory is made with. */
export interface MemoryLedgerOptions {
  readonly clock: Clock;
  /** How long an entry is kept after its call ended. */
  readonly retentionMs: number;
  readonly maxEntries: number;
  /** Of outcomes, in characters; the oldest are dropped over it, their entries stay. */
  readonly maxBytes: number;
}

/** Remembers calls as long as the process lives; for tests and for gateways that are to forget. */
export function createMemoryLedger(options: MemoryLedgerOptions): LedgerStore {
  const { clock, retentionMs, maxEntries, maxBytes } = options;
  /** In order of their last change. */
  const entries = new Map<string, LedgerEntry>();
  let bytes = 0;

  function put({ digest, callId }: LedgerClaim, id: string, state: LedgerEntry["state"], outcome?: string): void {
    remove(id);
    const known = { state, digest, callId, timeMs: clock.now() };
    entries.set(id, outcome === undefined ? known : { ...known, outcome });
    bytes += outcome?.length ?? 0;
    for (const [old, { outcome: dropped, ...entry }] of entries) {
      if (bytes <= maxBytes) return;
      bytes -= dropped?.length ?? 0;
      entries.set(old, entry);
    }
  }

  function remove(id: string): void {
    bytes -= entries.get(id)?.outcome?.length ?? 0;
    entries.delete(id);
  }

  function forgetOld(): void {
    const cutoffMs = clock.now() - retentionMs;
    for (const [id, { state, timeMs }] of entries) if (state !== "running" && timeMs <= cutoffMs) remove(id);
  }

  return {
    async find(key) {
      forgetOld();
      return entries.get(idOf(key));
    },
    async claim(claim) {
      forgetOld();
      const id = idOf(claim);
      const entry = entries.get(id);
      if (entry !== undefined && entry.callId !== claim.over) return entry;
      if (entry === undefined && entries.size >= maxEntries) throw ledgerFull(maxEntries);
      put(claim, id, "running");
      return undefined;
    },
    async settle(claim, settlement) {
      const id = idOf(claim);
      if (settlement.state === "failed-no-effect") remove(id);
      else put(claim, id, settlement.state, settlement.state === "committed" ? settlement.outcome : undefined);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function idOf({ principal, tool, key }: LedgerKey): string {
  return JSON.stringify([principal, tool, key]);
}
