/** An abort controller of one piece of work, tied to its caller's signal until `unlink`. */
export interface LinkedController {
  readonly signal: AbortSignal;
  /** Aborts this work only. The first reason stays. */
  abort(reason?: unknown): void;
  /** Lets go of the caller's signal, which may live for long. */
  unlink(): void;
}

/** A controller that aborts with the parent's reason when the parent does. */
export function linkedController(parent: AbortSignal | undefined): LinkedController {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(parent?.reason);
  if (parent?.aborted === true) onAbort();
  else parent?.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => parent?.removeEventListener("abort", onAbort),
  };
}

/**
 * The events of a piece of work whose early `return()` aborts it at once. A generator's own `return()` would wait behind
 * a read that is still pending.
 */
export function abortOnReturn<T>(
  events: AsyncGenerator<T, void, undefined>,
  controller: LinkedController,
): AsyncIterableIterator<T> {
  return {
    next: () => events.next(),
    return() {
      controller.abort();
      return events.return();
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/**
 * Waits, or stops waiting when the signal aborts.
 *
 * @throws the signal's reason when it aborts first.
 */
export function delay(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, delayMs);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
