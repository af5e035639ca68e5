import type { Clock } from "../core/clock.ts";

/** How far back calls and repetitions count. */
const WINDOW_SECONDS = 10;

/** So many repetitions in the window are always allowed, so that a rarely called upstream has its retries too. */
const FLOOR = 10;

/** Upstreams that are kept before those without a call in the window are looked for. */
const FIRST_SWEEP = 64;

/** Calls and repetitions of one upstream over the window, second by second. */
class Traffic {
  readonly #calls = Array.from({ length: WINDOW_SECONDS }, () => 0);
  readonly #repetitions = Array.from({ length: WINDOW_SECONDS }, () => 0);
  #second = 0;

  /** Forgets what is older than the window. */
  roll(second: number): void {
    const passed = Math.min(second - this.#second, WINDOW_SECONDS);
    for (let i = 0; i < passed; i++) {
      const slot = (second - i) % WINDOW_SECONDS;
      this.#calls[slot] = 0;
      this.#repetitions[slot] = 0;
    }
    this.#second = second;
  }

  addCall(): void {
    add(this.#calls, this.#second);
  }

  addRepetition(): void {
    add(this.#repetitions, this.#second);
  }

  get calls(): number {
    return sum(this.#calls);
  }

  get repetitions(): number {
    return sum(this.#repetitions);
  }
}

/**
 * Bounds what is sent to an upstream beyond what callers asked for: whatever each call may do by itself, all retries
 * and hedges together stay within a share of the calls of the last 10 s. Time is read, never waited for.
 */
export class RetryBudgets {
  readonly #traffic = new Map<string, Traffic>();
  #sweepAt = FIRST_SWEEP;

  /** A caller's call of the upstream begins. */
  call(upstream: string, clock: Clock): void {
    this.#of(upstream, clock).addCall();
  }

  /** Takes one repetition of a call, unless as many as the share allows (and more than 10) have been taken. */
  take(upstream: string, share: number, clock: Clock): boolean {
    const traffic = this.#of(upstream, clock);
    if (traffic.repetitions >= Math.max(FLOOR, traffic.calls * share)) return false;
    traffic.addRepetition();
    return true;
  }

  /** Upstreams that are kept. */
  get size(): number {
    return this.#traffic.size;
  }

  #of(upstream: string, clock: Clock): Traffic {
    const second = Math.floor(clock.monotonicMs() / 1_000);
    let traffic = this.#traffic.get(upstream);
    if (traffic === undefined) {
      if (this.#traffic.size >= this.#sweepAt) this.#sweep(second);
      traffic = new Traffic();
      this.#traffic.set(upstream, traffic);
    }
    traffic.roll(second);
    return traffic;
  }

  #sweep(second: number): void {
    for (const [upstream, traffic] of this.#traffic) {
      traffic.roll(second);
      if (traffic.calls === 0 && traffic.repetitions === 0) this.#traffic.delete(upstream);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP, this.#traffic.size * 2);
  }
}

function add(counts: number[], second: number): void {
  const slot = second % WINDOW_SECONDS;
  counts[slot] = (counts[slot] ?? 0) + 1;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
