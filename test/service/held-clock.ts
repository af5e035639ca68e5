import { type Clock, systemClock } from "../../src/core/clock.ts";

/** The system's clock, but for timers of one length: those wait until a test says that their time has come. */
export interface HeldClock extends Clock {
  /** Runs those that wait. */
  pass(): void;
}

/** Makes such a clock, so that a limit passes when a test wants it to and not in the middle of a slow handshake. */
export function heldClock(heldMs: number): HeldClock {
  const held = new Set<() => void>();
  return {
    ...systemClock,
    after(delayMs, task) {
      if (delayMs !== heldMs) return systemClock.after(delayMs, task);
      held.add(task);
      return { [Symbol.dispose]: () => void held.delete(task) };
    },
    pass() {
      for (const task of held) {
        held.delete(task);
        task();
      }
    },
  };
}

/** Has the limit pass again and again until the peer has been cut: it may have one more step to come to. */
export async function passUntil(clock: HeldClock, closed: Promise<void>): Promise<void> {
  const timer = setInterval(() => clock.pass(), 20);
  await closed.finally(() => clearInterval(timer));
}
