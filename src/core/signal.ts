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

/**
 * Passes events on until the signal aborts, then ends with its reason even where the source ignores its signal. A
 * source that reacts to the signal within `graceMs` ends with its own error, which knows more (what took effect).
 * Whatever way it ends, the source's `return()` is called and not waited for.
 */
export async function* eventsUntil<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal,
  clock: Clock,
  graceMs = 25,
): AsyncGenerator<T, void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  let ended = false;
  try {
    while (true) {
      const step = await settleOrAbort(iterator.next(), signal, clock, graceMs);
      if (step.done === true) {
        ended = true;
        return;
      }
      yield step.value;
    }
  } finally {
    if (!ended) iterator.return?.().catch(() => undefined);
  }
}

function settleOrAbort<T>(promise: Promise<T>, signal: AbortSignal, clock: Clock, graceMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let grace: Disposable | undefined;
    const onAbort = (): void => {
      grace = clock.after(graceMs, () => reject(signal.reason));
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener("abort", onAbort);
      grace?.[Symbol.dispose]();
    });
  });
}
