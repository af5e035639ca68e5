import type { Clock } from "../core/clock.ts";

/** A file that changes all the time is read nevertheless after this long, or four times the settle delay. */
const MAX_HOLD_MS = 2_000;

/** A file that was seen to change and is not read yet. */
export interface Pending {
  readonly path: string;
  /** When the change was noticed. Monotonic milliseconds, as all times here. */
  firstMs: number;
  /** When it was last seen to be another. */
  changedMs: number;
  /** What it looked like then, where that is known. */
  stamp: string | undefined;
  /** Since when there is nothing at the path. */
  missingSinceMs: number | undefined;
  dueMs: number;
}

/** Holds changed files back until they have been left alone for a while, since half a file may be a valid one. */
export class SettleQueue {
  readonly #clock: Clock;
  readonly #settleMs: number;
  readonly #maxHoldMs: number;
  readonly #pending = new Map<string, Pending>();

  constructor(clock: Clock, settleMs: number) {
    this.#clock = clock;
    this.#settleMs = settleMs;
    this.#maxHoldMs = Math.max(MAX_HOLD_MS, settleMs * 4);
  }

  /** How long until the first is due; infinite where none is pending. */
  get nextInMs(): number {
    let dueMs = Number.POSITIVE_INFINITY;
    for (const pending of this.#pending.values()) dueMs = Math.min(dueMs, pending.dueMs);
    return dueMs - this.#clock.monotonicMs();
  }

  /**
   * Notes that a file has changed. Returns how long until it is due.
   *
   * @param stamp what it looks like, where that is known: a file that looks as before is not noted as changed again.
   * @param ageMs how long ago it changed. Default 0.
   */
  note(path: string, stamp?: string, ageMs = 0): number {
    const nowMs = this.#clock.monotonicMs();
    const changedMs = nowMs - ageMs;
    const pending = this.#pending.get(path);
    if (pending === undefined) {
      const dueMs = changedMs + this.#settleMs;
      this.#pending.set(path, { path, firstMs: nowMs, changedMs, stamp, missingSinceMs: undefined, dueMs });
      return dueMs - nowMs;
    }
    if (stamp === undefined || stamp !== pending.stamp) {
      pending.changedMs = changedMs;
      pending.stamp = stamp ?? pending.stamp;
      pending.dueMs = Math.min(changedMs + this.#settleMs, pending.firstMs + this.#maxHoldMs);
    }
    return pending.dueMs - nowMs;
  }

  /** Those that are due, in code-unit order of path. */
  due(): Pending[] {
    const nowMs = this.#clock.monotonicMs();
    const due = [...this.#pending.values()].filter((pending) => pending.dueMs <= nowMs);
    return due.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** Takes one out. False: it has changed again since it was due, and stays. */
  take(pending: Pending): boolean {
    return pending.dueMs <= this.#clock.monotonicMs() && this.#pending.delete(pending.path);
  }

  /** Puts one back that was not ready. What was noted in the meantime stays noted. */
  putBack(pending: Pending, dueMs: number): void {
    const newer = this.#pending.get(pending.path);
    if (newer === undefined) {
      this.#pending.set(pending.path, Object.assign(pending, { dueMs }));
      return;
    }
    newer.firstMs = pending.firstMs;
    newer.missingSinceMs = pending.missingSinceMs;
    newer.stamp ??= pending.stamp;
  }

  /** Forgets one. */
  delete(path: string): void {
    this.#pending.delete(path);
  }

  /** Whether a file was held back so long that it is read whatever it does. */
  isHeldTooLong(pending: Pending): boolean {
    return this.#clock.monotonicMs() - pending.firstMs >= this.#maxHoldMs;
  }
}
