import type { Clock } from "./clock.ts";

/** Bounds of {@link Slots}. */
export interface SlotLimits {
  /** Most slots held at a time, at least 1. */
  readonly limit: number;
  /** Most that wait for one. */
  readonly maxWaiting: number;
}

/** What a wait for a slot met. */
export interface SlotRefusal {
  /** `full`: the line is as long as it may be. `timeout`: its turn did not come in time. */
  readonly why: "full" | "timeout";
  /** Place in the line, 1 for the next in turn: the one it had at the end, or would have had. */
  readonly position: number;
  readonly limits: SlotLimits;
}

/** How to wait. */
export interface SlotWait {
  /** Ends the wait with its reason. */
  readonly signal: AbortSignal;
  /** Longest wait in milliseconds. Default: until the signal aborts. */
  readonly maxWaitMs?: number;
  /** Longest line to stand in, itself not counted, where it is not to be that of the limits. */
  readonly maxWaiting?: number;
  /** Makes the error of a wait that is refused. */
  refused(refusal: SlotRefusal): Error;
}

/** A slot. Disposing gives it back; once is enough, and more does no harm. */
export interface Slot extends Disposable {
  /** How long it was waited for, in milliseconds. */
  readonly waitedMs: number;
}

interface Waiter {
  readonly sinceMs: number;
  give(slot: Slot): void;
}

/** A bounded number of slots, given in the order they were asked for; one that leaves the line leaves it at once. */
export class Slots {
  readonly #clock: Clock;
  readonly #line = new Set<Waiter>();
  #limits: SlotLimits;
  #held = 0;

  constructor(limits: SlotLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Slots held now. */
  get held(): number {
    return this.#held;
  }

  /** How many wait now. */
  get waiting(): number {
    return this.#line.size;
  }

  get limits(): SlotLimits {
    return this.#limits;
  }

  /** Whether {@link take} gives a slot at once. */
  get free(): boolean {
    return this.#line.size === 0 && this.#held < this.#limits.limit;
  }

  /** Other bounds from now on: more slots go to who waits, and what is held or waits already stays. */
  setLimits(limits: SlotLimits): void {
    this.#limits = limits;
    this.#giveOut();
  }

  /**
   * A slot: at once where one is free and nobody waits, else in turn.
   *
   * @throws the error of `refused`, or the signal's reason.
   */
  take(wait: SlotWait): Slot | Promise<Slot> {
    wait.signal.throwIfAborted();
    if (this.free) return this.#hold(0);
    const maxWaiting = wait.maxWaiting ?? this.#limits.maxWaiting;
    if (this.#line.size >= maxWaiting) {
      const limits = { ...this.#limits, maxWaiting };
      throw wait.refused({ why: "full", position: this.#line.size + 1, limits });
    }
    return this.#queue(wait);
  }

  #queue({ signal, maxWaitMs, maxWaiting = this.#limits.maxWaiting, refused }: SlotWait): Promise<Slot> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#line.delete(waiter);
        signal.removeEventListener("abort", onAbort);
        timer?.[Symbol.dispose]();
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason);
      };
      const onTimeout = (): void => {
        const position = [...this.#line].indexOf(waiter) + 1;
        leave();
        reject(refused({ why: "timeout", position, limits: { ...this.#limits, maxWaiting } }));
      };
      const waiter: Waiter = {
        sinceMs: this.#clock.monotonicMs(),
        give: (slot) => {
          leave();
          resolve(slot);
        },
      };
      const timer = maxWaitMs === undefined ? undefined : this.#clock.after(maxWaitMs, onTimeout);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#line.add(waiter);
    });
  }

  #hold(waitedMs: number): Slot {
    let held = true;
    this.#held += 1;
    return {
      waitedMs,
      [Symbol.dispose]: () => {
        if (!held) return;
        held = false;
        this.#held -= 1;
        this.#giveOut();
      },
    };
  }

  #giveOut(): void {
    for (const waiter of this.#line) {
      if (this.#held >= this.#limits.limit) return;
      waiter.give(this.#hold(this.#clock.monotonicMs() - waiter.sinceMs));
    }
  }
}
