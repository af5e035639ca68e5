import type { Clock } from "../core/clock.ts";

/** Failures of one address that may come at once. */
const BURST = 20;
/** One more may come after each of these. */
const REFILL_MS = 1_000;
/** Most addresses that are remembered; over it the one that failed longest ago is forgotten. */
const MAX_ADDRESSES = 10_000;

/** Slows who tries credentials: after 20 failures an address has one try a second. */
export class FailedAttempts {
  readonly #clock: Clock;
  /** How many failures an address has not yet waited for, as of a moment; oldest first. */
  readonly #debts = new Map<string, { readonly count: number; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How long an address has to wait before its next try, in milliseconds; 0: not at all. */
  waitMs(address: string): number {
    return Math.max(0, Math.ceil((this.#debt(networkOf(address)) - BURST + 1) * REFILL_MS));
  }

  /** A try of this address failed. Whether it has to wait from now on. */
  add(address: string): boolean {
    const network = networkOf(address);
    const count = this.#debt(network) + 1;
    this.#debts.delete(network);
    this.#debts.set(network, { count, atMs: this.#clock.monotonicMs() });
    for (const oldest of this.#debts.keys()) {
      if (this.#debts.size <= MAX_ADDRESSES) break;
      this.#debts.delete(oldest);
    }
    return count > BURST - 1;
  }

  #debt(network: string): number {
    const debt = this.#debts.get(network);
    if (debt === undefined) return 0;
    return Math.max(0, debt.count - (this.#clock.monotonicMs() - debt.atMs) / REFILL_MS);
  }
}

/** What one attacker has for itself: an IPv4 address, or the /64 that everybody gets of IPv6. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(":")) return address;
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(":").filter((group) => group !== "").length;
  return [...groups, ...Array.from({ length: missing }, () => "0"), ...(tail ?? "").split(":")].slice(0, 4).join(":");
}
