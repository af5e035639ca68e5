/** Longest delay a Node timer takes; a longer one would fire at once. Source: Node.js `timers` documentation. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Time and timers, so that tests can hold the clock. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds, for measuring. */
  monotonicMs(): number;
  /** Runs `task` once after `delayMs`, which may be longer than 2^31 ms. Disposing cancels it. */
  after(delayMs: number, task: () => void): Disposable;
}

/** The real clock. Its timers keep the process alive, since each belongs to work in progress. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, task) {
    const due = performance.now() + delayMs;
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const left = Math.max(0, due - performance.now());
      timer = left > MAX_TIMER_MS ? setTimeout(arm, MAX_TIMER_MS) : setTimeout(task, left);
    };
    arm();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

/**
 * Waits for `delayMs` or until the signal aborts.
 *
 * @throws the signal's reason when it aborts first.
 */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      timer[Symbol.dispose]();
      reject(signal.reason);
    };
    const timer = clock.after(delayMs, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
