import type { Clock } from "./clock.ts";

/** An abort controller tied to other signals until it is disposed. */
export interface LinkedSignal extends Disposable {
  readonly signal: AbortSignal;
  /** Aborts this signal only. The first reason stays. */
  abort(reason: unknown): void;
}

/**
 * A signal that aborts when any of the given ones does, with that one's reason. Dispose it when the work is over:
 * `AbortSignal.any` with a listener left on keeps 1.25 KB alive for each call on a long-lived parent.
 */
export function linkSignals(...parents: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const unlink: (() => void)[] = [];
  for (const parent of parents) {
    if (parent.aborted) {
      controller.abort(parent.reason);
      break;
    }
    const onAbort = (): void => controller.abort(parent.reason);
    parent.addEventListener("abort", onAbort, { once: true });
    unlink.push(() => parent.removeEventListener("abort", onAbort));
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    [Symbol.dispose]: () => {
      for (const undo of unlink) undo();
    },
  };
}

/**
 * Settles as the promise does, or rejects with the signal's reason as soon as it aborts. Work that ignores its signal
 * goes on unseen; its late rejection is swallowed, since the caller has its answer already.
 */
export function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** How {@link eventsUntil} ends a source that does not end itself. */
export interface EventsUntilOptions {
  /** How long a source may take to end by itself once the signal aborted. Default 25 ms. */
  readonly graceMs?: number;
  /** What to end with when it does not; default the signal's reason. */
  readonly cutError?: () => unknown;
}

/**
 * Passes events on until the signal aborts, then ends with its reason even where the source ignores its signal. A
 * source that reacts within `graceMs` ends with its own error, which knows more (what took effect); events it gives
 * in that time still pass. A source is not begun at all when the signal has aborted before. Whatever way it ends, the
 * source's `return()` is called and not waited for.
 *
 * @throws what the source throws; the signal's reason or `cutError` when the source is cut.
 */
export async function* eventsUntil<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal,
  clock: Clock,
  options: EventsUntilOptions = {},
): AsyncGenerator<T, void, undefined> {
  signal.throwIfAborted();
  const iterator = source[Symbol.asyncIterator]();
  const cut = cutAfterAbort(signal, clock, options);
  let ended = false;
  try {
    while (true) {
      const step = await cut.race(iterator.next());
      if (step.done === true) {
        ended = true;
        return;
      }
      yield step.value;
    }
  } finally {
    cut[Symbol.dispose]();
    // A late rejection is of no use to anybody: the reader has its answer.
    if (!ended) iterator.return?.().catch(() => undefined);
  }
}

interface Cut extends Disposable {
  /** Settles as the promise does; rejects when the grace is over first. One at a time. */
  race<T>(promise: Promise<T>): Promise<T>;
}

/** The grace begins once: at the abort, or at the first pull after it if nobody was waiting then. */
function cutAfterAbort(signal: AbortSignal, clock: Clock, options: EventsUntilOptions): Cut {
  let refuse: ((error: unknown) => void) | undefined;
  let grace: Disposable | undefined;
  let over = false;
  const cutError = (): unknown => (options.cutError === undefined ? signal.reason : options.cutError());
  const onAbort = (): void => {
    if (refuse === undefined || grace !== undefined) return;
    grace = clock.after(options.graceMs ?? 25, () => {
      over = true;
      refuse?.(cutError());
    });
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    race: (promise) =>
      new Promise((resolve, reject) => {
        refuse = reject;
        if (over) reject(cutError());
        else if (signal.aborted) onAbort();
        promise.then(
          (value) => {
            refuse = undefined;
            resolve(value);
          },
          (error) => {
            refuse = undefined;
            reject(error);
          },
        );
      }),
    [Symbol.dispose]: () => {
      signal.removeEventListener("abort", onAbort);
      grace?.[Symbol.dispose]();
    },
  };
}
