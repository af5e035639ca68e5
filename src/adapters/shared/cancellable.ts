/**
 * Events of a generator whose `return()` cancels at once. A generator by itself would take it up only when what it
 * waits for has come, and what a call waits for may never come.
 */
export function cancellable<T>(events: AsyncGenerator<T, void, undefined>, cancel: () => void): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => events.next(),
      return() {
        cancel();
        return events.return();
      },
    }),
  };
}
