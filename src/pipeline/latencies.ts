/** How many of the last are kept. */
const KEPT = 128;

/** With fewer, a percentile says nothing. */
const FEWEST = 20;

/** So many may come before the order is made anew. */
const STALE_AFTER = 16;

/** The last latencies of a tool, for their percentiles. */
export class Latencies {
  readonly #ring: number[] = [];
  #next = 0;
  #sorted: readonly number[] = [];
  #stale = STALE_AFTER;

  /** A call took so many milliseconds, or longer where it was given up. */
  add(ms: number): void {
    this.#ring[this.#next] = ms;
    this.#next = (this.#next + 1) % KEPT;
    this.#stale += 1;
  }

  /** What `share` percent of the last calls did not exceed, in milliseconds; `undefined` while there are too few. */
  percentile(share: number): number | undefined {
    if (this.#ring.length < FEWEST) return undefined;
    if (this.#stale >= STALE_AFTER) {
      this.#sorted = this.#ring.toSorted((a, b) => a - b);
      this.#stale = 0;
    }
    return this.#sorted[Math.min(this.#sorted.length - 1, Math.ceil((this.#sorted.length * share) / 100) - 1)];
  }
}
