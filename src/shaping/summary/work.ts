import { setImmediate } from "node:timers/promises";

/** Work that stops between its pieces, so that others get their turn. Its outcome does not depend on when it goes on. */
export type Work<T> = Generator<undefined, T, undefined>;

/** Longest time, in milliseconds, that work goes on before others get their turn. */
const SLICE_MS = 5;

/** Does all of the work at once. */
export function finish<T>(work: Work<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Does the work in slices of a few milliseconds; what else the process has to do goes on between them. */
export async function finishUnhurried<T>(work: Work<T>): Promise<T> {
  let until = performance.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (performance.now() < until) continue;
    await setImmediate();
    until = performance.now() + SLICE_MS;
  }
}
