import type { Clock } from "../../src/core/clock.ts";

/** A clock that stands still until a test moves it. */
export interface FakeClock extends Clock {
  /**
   * Moves time on, running what falls due in order of time, then of creation. Before the first task and after each,
   * work that waits on promises gets its turn, so that timers it sets are seen too. Rejects with what a task throws.
   */
  advance(ms: number): Promise<void>;
  /** Timers that wait: 0 shows that everything was freed. */
  readonly pending: number;
  /** How long until the next timer; `undefined` where none waits. */
  readonly nextInMs: number | undefined;
}

interface Timer {
  readonly dueMs: number;
  readonly task: () => void;
}

/**
 * Makes a clock whose `now()` begins at `startMs` (default 2026-01-01T00:00:00Z) and whose monotonic time begins at 0.
 * Timers run inside `advance` only, so a test decides when time passes.
 *
 * @param random decides which of those that fall due at the same time runs first; default: the oldest.
 */
export function createFakeClock(startMs = Date.UTC(2026, 0, 1), random?: () => number): FakeClock {
  let elapsedMs = 0;
  const timers = new Set<Timer>();

  function next(): Timer | undefined {
    let first: Timer | undefined;
    let ties = 1;
    for (const timer of timers) {
      if (first === undefined || timer.dueMs < first.dueMs) {
        first = timer;
        ties = 1;
      } else if (timer.dueMs === first.dueMs && random !== undefined) {
        ties += 1;
        if (random() < 1 / ties) first = timer;
      }
    }
    return first;
  }

  return {
    now: () => startMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    after(delayMs, task) {
      const timer: Timer = { dueMs: elapsedMs + Math.max(0, delayMs), task };
      timers.add(timer);
      return { [Symbol.dispose]: () => void timers.delete(timer) };
    },
    async advance(ms) {
      const target = elapsedMs + ms;
      await settle();
      for (let timer = next(); timer !== undefined && timer.dueMs <= target; timer = next()) {
        elapsedMs = timer.dueMs;
        timers.delete(timer);
        timer.task();
        await settle();
      }
      elapsedMs = target;
    },
    get pending() {
      return timers.size;
    },
    get nextInMs() {
      const timer = next();
      return timer === undefined ? undefined : timer.dueMs - elapsedMs;
    },
  };
}

/** One turn of the event loop: every promise chain that needs no I/O has run when it resolves. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
