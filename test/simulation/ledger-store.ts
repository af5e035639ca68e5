import { type Clock, sleep } from "../../src/core/clock.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { LedgerKey, LedgerStore, SpillStore } from "../../src/core/store.ts";
import { createMemoryLedger } from "../../src/stores/memory-ledger.ts";
import type { Dice } from "./dice.ts";
import type { Scenario } from "./scenario-parts.ts";

/** A ledger store that takes its time, fails by chance, and tells what it has on record. */
export interface SimulatedLedger extends LedgerStore {
  /** Operations that were claimed at some time. */
  readonly claimed: ReadonlySet<string>;
  /** Whether an operation has failed to be settled, so that its answer may be forgotten. */
  failed: boolean;
}

export function createSimulatedLedger(
  clock: Clock,
  dice: Dice,
  { failing, slowestMs }: Scenario["ledger"],
): SimulatedLedger {
  const store = createMemoryLedger({ clock, retentionMs: 1e12, maxEntries: 1_000, maxBytes: 1_000_000 });
  const claimed = new Set<string>();
  const never = new AbortController().signal;
  /** Half of what fails was done all the same, as with a disk that answers too late. */
  const perhaps = async <T>(work: () => Promise<T>): Promise<T> => {
    if (slowestMs > 0) await sleep(clock, dice.between(0, slowestMs), never);
    const fails = dice.chance(failing);
    if (fails && dice.chance(0.5)) throw unavailable();
    const done = await work();
    if (fails) throw unavailable();
    return done;
  };
  const ledger: SimulatedLedger = {
    claimed,
    failed: false,
    find: (key) => perhaps(() => store.find(key)),
    claim: (claim) =>
      perhaps(async () => {
        const standing = await store.claim(claim);
        if (standing === undefined) claimed.add(operationOf(claim));
        return standing;
      }),
    settle: async (claim, settlement) => {
      try {
        await perhaps(() => store.settle(claim, settlement));
      } catch (error) {
        ledger.failed = true;
        throw error;
      }
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
  return ledger;
}

function operationOf({ principal, tool, key }: LedgerKey): string {
  return `${principal} ${tool} ${key}`;
}

function unavailable(): GatewayError {
  return new GatewayError("LEDGER_UNAVAILABLE", "the disk failed");
}

/** Room for output, in memory, that knows how much of it is not freed. */
export interface SimulatedSpill extends SpillStore {
  readonly open: SpillStore["open"];
  readonly files: () => number;
}

export function createSimulatedSpill(): SimulatedSpill {
  let files = 0;
  return {
    files: () => files,
    async open() {
      let bytes = Buffer.alloc(0);
      let isOpen = true;
      files += 1;
      return {
        async write(piece, offset) {
          const whole = Buffer.alloc(Math.max(bytes.length, offset + piece.byteLength));
          bytes.copy(whole);
          whole.set(piece, offset);
          bytes = whole;
        },
        read: async (offset, length) => bytes.subarray(offset, offset + length),
        async [Symbol.asyncDispose]() {
          if (isOpen) files -= 1;
          isOpen = false;
        },
      };
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}
