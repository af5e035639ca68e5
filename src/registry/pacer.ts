import { setImmediate } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";

/** Longest stretch of work before others get their turn. */
const SLICE_MS = 8;

/** Cuts long work into slices, so that calls are served while thousands of declarations load. */
export class Pacer {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** To be awaited between two pieces of work: gives the event loop a turn once a slice is used up. */
  async turn(): Promise<void> {
    if (this.#clock.monotonicMs() - this.#sinceMs < SLICE_MS) return;
    await setImmediate();
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
