import type { RateLimit } from "../../core/step.ts";

/** Far below any time that matters, and above what sums of fractions are off by. */
const TOLERANCE_MS = 1e-3;

/**
 * A bucket of `burst` tokens that fills up at `requests` in `perMs`. Keeps one number and no timer: when it would be
 * full again (the generic cell rate algorithm). Another rate counts from the next look on.
 * Source: ITU-T I.371, "GCRA".
 */
export class TokenBucket {
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /** How long until it has a token, in milliseconds; 0: it has one. */
  waitMs(rate: RateLimit, nowMs: number): number {
    const tokenMs = rate.perMs / rate.requests;
    const waitMs = this.#filledAt(rate, nowMs) - nowMs + tokenMs - rate.burst * tokenMs;
    return waitMs > TOLERANCE_MS ? waitMs : 0;
  }

  /** Takes a token, which must be there. */
  take(rate: RateLimit, nowMs: number): void {
    this.#fullAtMs = this.#filledAt(rate, nowMs) + rate.perMs / rate.requests;
  }

  /** Whether it is full, as a new one is. */
  isFull(nowMs: number): boolean {
    return this.#fullAtMs <= nowMs;
  }

  /** Never later than an empty bucket takes to fill, whatever rate there was before. */
  #filledAt({ requests, perMs, burst }: RateLimit, nowMs: number): number {
    return Math.min(Math.max(this.#fullAtMs, nowMs), nowMs + (burst * perMs) / requests);
  }
}
