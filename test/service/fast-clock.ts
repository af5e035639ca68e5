import { type Clock, systemClock } from "../../src/core/clock.ts";

/** The real clock, so many times as fast; it says the real time of day, moved by `aheadMs`. */
export function fastClock(times: number, aheadMs = 0): Clock {
  return {
    now: () => systemClock.now() + aheadMs,
    monotonicMs: () => systemClock.monotonicMs() * times,
    after: (delayMs, task) => systemClock.after(delayMs / times, task),
  };
}
