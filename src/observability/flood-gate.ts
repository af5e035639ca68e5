import type { Clock } from "../core/clock.ts";

/** Lines that may come at once. */
const BURST = 100;
/** One more may come after each of these. */
const REFILL_MS = 100;

/** Lets lines pass, but not without end: of those it keeps back it tells the number. */
export class FloodGate {
  readonly #clock: Clock;
  #room = BURST;
  #asOfMs: number;
  #kept = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#asOfMs = clock.monotonicMs();
  }

  /** What to add to a line that passes; `undefined`: it does not. */
  pass(): { readonly suppressed?: number } | undefined {
    const nowMs = this.#clock.monotonicMs();
    this.#room = Math.min(BURST, this.#room + (nowMs - this.#asOfMs) / REFILL_MS);
    this.#asOfMs = nowMs;
    if (this.#room < 1) {
      this.#kept += 1;
      return undefined;
    }
    this.#room -= 1;
    const suppressed = this.#kept;
    this.#kept = 0;
    return suppressed === 0 ? {} : { suppressed };
  }
}
