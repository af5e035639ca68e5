import type { Clock } from "../core/clock.ts";

/** Stands between events where the source was silent for a while. */
export const TICK = Symbol("tick");

/**
 * Passes events on, and a {@link TICK} whenever the reader has waited `tickMs` for the next one. A reader that does not
 * read gets none.
 */
export async function* withTicks<T>(
  source: AsyncIterable<T>,
  tickMs: number,
  clock: Clock,
): AsyncGenerator<T | typeof TICK, void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  const silence = createSilence(tickMs, clock);
  let ended = false;
  try {
    let next = iterator.next();
    while (true) {
      const step = await silence.race(next);
      if (step === TICK) {
        yield TICK;
        continue;
      }
      ended = step.done === true;
      if (step.done === true) return;
      yield step.value;
      next = iterator.next();
    }
  } finally {
    silence[Symbol.dispose]();
    // Not waited for: a source that still works on its next event would hold the reader.
    if (!ended) iterator.return?.().catch(() => undefined);
  }
}

interface Silence extends Disposable {
  /** Settles as the promise does, or resolves to TICK after a silence. */
  race<T>(promise: Promise<T>): Promise<T | typeof TICK>;
}

/** One timer for the whole stream, moved on when it fires, since a timer for each event costs more than the event. */
function createSilence(tickMs: number, clock: Clock): Silence {
  let tick: ((value: typeof TICK) => void) | undefined;
  let waitingSinceMs = 0;
  let timer: Disposable | undefined;

  function arm(delayMs: number): void {
    timer = clock.after(delayMs, () => {
      timer = undefined;
      if (tick === undefined) return;
      const leftMs = waitingSinceMs + tickMs - clock.monotonicMs();
      if (leftMs > 0) arm(leftMs);
      else tick(TICK);
    });
  }

  return {
    race: (promise) =>
      new Promise((resolve, reject) => {
        tick = resolve;
        waitingSinceMs = clock.monotonicMs();
        if (timer === undefined) arm(tickMs);
        promise.then(resolve, reject).finally(() => {
          if (tick === resolve) tick = undefined;
        });
      }),
    [Symbol.dispose]: () => timer?.[Symbol.dispose](),
  };
}
