import type { Clock } from "../core/clock.ts";

/** Longest stretch of work before the event loop gets its turn. */
const SLICE_MS = 8;

/**
 * Shares the event loop among calls. Events that came together, such as a burst of tiny ones in one piece of an
 * upstream's answer, would be passed on without a pause, and hold up everybody else.
 */
export class Turns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** To be awaited, where there is one, before an event is passed on. Who waits gets one event after the other. */
  next(): Promise<void> | undefined {
    if (this.#waiting.length === 0 && !this.#used()) return undefined;
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(() => this.#begin());
    });
  }

  #used(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= SLICE_MS;
  }

  #begin(): void {
    this.#sinceMs = this.#clock.monotonicMs();
    this.#release();
  }

  /** Lets one go on; what it does is done before the next is asked after, since ticks follow upon microtasks. */
  #release(): void {
    this.#waiting.shift()?.();
    queueMicrotask(() =>
      process.nextTick(() => {
        if (this.#waiting.length === 0) return;
        if (this.#used()) setImmediate(() => this.#begin());
        else this.#release();
      }),
    );
  }
}
