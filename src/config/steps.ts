/** Work that pauses between its steps, where others may have their turn. */
export type Steps<T> = Generator<void, T, void>;

/** Does work in one go. */
export function inOneGo<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
