import type { Clock } from "../../core/clock.ts";

/**
 * Watches one limit of time at a time, over the phases of a call. Moving the limit on costs no timer: one is set anew
 * only when it would come too late.
 */
export class Watchdog<L extends string> implements Disposable {
  readonly #clock: Clock;
  readonly #onSpent: (limit: L) => void;
  #watched: { readonly limit: L; readonly dueMs: number } | undefined;
  #timer: Disposable | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /** `onSpent` is called when the limit watched last is over, at most once for each `watch`. */
  constructor(clock: Clock, onSpent: (limit: L) => void) {
    this.#clock = clock;
    this.#onSpent = onSpent;
  }

  /** From now on this limit counts instead of the one before. */
  watch(limit: L, limitMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    this.#watched = { limit, dueMs: nowMs + limitMs };
    if (this.#watched.dueMs < this.#timerDueMs) this.#arm(nowMs);
  }

  /** No limit counts until the next `watch`. */
  rest(): void {
    this.#watched = undefined;
  }

  [Symbol.dispose](): void {
    this.#watched = undefined;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#timerDueMs = Number.NEGATIVE_INFINITY;
  }

  #arm(nowMs: number): void {
    this.#timer?.[Symbol.dispose]();
    this.#timerDueMs = this.#watched?.dueMs ?? Number.POSITIVE_INFINITY;
    this.#timer = this.#clock.after(this.#timerDueMs - nowMs, () => this.#look());
  }

  #look(): void {
    this.#timer = undefined;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
    const watched = this.#watched;
    if (watched === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    if (watched.dueMs > nowMs) {
      this.#arm(nowMs);
      return;
    }
    this.#watched = undefined;
    this.#onSpent(watched.limit);
  }
}
