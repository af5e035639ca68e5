import { EventEmitter } from "node:events";
import CircuitBreaker from "opossum";
import type { Clock } from "../core/clock.ts";
import type { UpstreamFault, Verdict } from "./upstream-fault.ts";

/** Longest delay of a Node timer: opossum's own way back is never taken, since it knows no clock but the system's. */
const NEVER_MS = 2 ** 31 - 1;

/** What a circuit is made of. */
export interface CircuitOptions {
  /** Faults in a row after which it opens. */
  readonly failureThreshold: number;
  /** How long it stays open before one attempt may try the upstream. */
  readonly resetTimeoutMs: number;
  readonly clock: Clock;
  /** Called after each change of state. */
  changed(): void;
}

/** The right to make one attempt. It ends once; what an attempt shows after its circuit has moved on counts no more. */
export interface Permit {
  /**
   * The first output of the attempt is there: where it is the one that tries the upstream, that is enough, and closes the
   * circuit. Returns whether it did.
   */
  alive(): boolean;
  end(verdict: Verdict): void;
}

/** How a circuit stands: attempts pass, none does, or one that tries whether the upstream works again. */
export type CircuitState = "closed" | "open" | "half-open";

/**
 * Counts an upstream's faults in a row and opens at so many: from then on no attempt passes, for `resetTimeoutMs`; then
 * one does, and its outcome closes the circuit or opens it for as long again. The states are opossum's; the counting is
 * not, since opossum knows shares of failures only, and neither is the time, which is the clock's. Disposing it frees
 * its timer.
 */
export class Circuit implements Disposable {
  readonly #options: CircuitOptions;
  #breaker = makeBreaker(false);
  #faults = 0;
  #lastFault: UpstreamFault = { words: "none", reachable: true };
  #reset: { readonly atMs: number; readonly timer: Disposable } | undefined;
  #disposed = false;

  constructor(options: CircuitOptions) {
    this.#options = options;
  }

  get state(): CircuitState {
    if (this.#breaker.closed) return "closed";
    return this.#breaker.opened ? "open" : "half-open";
  }

  /** Faults since the upstream answered last. */
  get faults(): number {
    return this.#faults;
  }

  get lastFault(): UpstreamFault {
    return this.#lastFault;
  }

  /** How long until it tries the upstream again; 0 unless it is open. */
  get retryInMs(): number {
    return Math.max(0, (this.#reset?.atMs ?? 0) - this.#options.clock.monotonicMs());
  }

  /** When that is, in milliseconds since the epoch. */
  get retryAtMs(): number {
    return this.#options.clock.now() + this.retryInMs;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Lets an attempt pass; `undefined`: it must not be made. */
  admit(): Permit | undefined {
    const breaker = this.#breaker;
    const probe = breaker.halfOpen;
    if (breaker.opened || (probe && !breaker.pendingClose)) return undefined;
    const trial = Promise.withResolvers<void>();
    // The verdict counts when it comes; what opossum makes of it a moment later is of no use to anybody.
    trial.promise.catch(() => undefined);
    breaker.fire(trial.promise).catch(() => undefined);
    let ended = false;
    return {
      alive: () => {
        // Once closed, it is for other attempts too to say how the upstream does, and may be open again by their faults.
        const closes = probe && !ended && breaker === this.#breaker && breaker.halfOpen;
        if (closes) this.#close();
        return closes;
      },
      end: (verdict) => {
        if (ended) return;
        ended = true;
        if (breaker === this.#breaker && !this.#disposed) this.#take(verdict);
        if (typeof verdict === "string") trial.resolve();
        else trial.reject(new Error(verdict.words));
      },
    };
  }

  /** The verdict of an attempt that began before there was a circuit. */
  count(verdict: Verdict): void {
    if (this.#breaker.closed && !this.#disposed) this.#take(verdict);
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#clearReset();
    this.#breaker.shutdown();
  }

  #take(verdict: Verdict): void {
    const { closed, halfOpen } = this.#breaker;
    if (typeof verdict === "object") {
      if (!closed && !halfOpen) return;
      this.#faults += 1;
      this.#lastFault = verdict;
      if (halfOpen || this.#faults >= this.#options.failureThreshold) this.#open();
    } else if (verdict === "answered") {
      if (closed) this.#faults = 0;
      else if (halfOpen) this.#close();
    } else if (halfOpen) {
      // It showed nothing, so the next one tries.
      this.#halfOpen();
    }
  }

  #open(): void {
    const { clock, resetTimeoutMs } = this.#options;
    this.#breaker.open();
    this.#reset = {
      atMs: clock.monotonicMs() + resetTimeoutMs,
      timer: clock.after(resetTimeoutMs, () => {
        this.#reset = undefined;
        this.#halfOpen();
      }),
    };
    this.#options.changed();
  }

  #halfOpen(): void {
    // What is still under way belongs to the one before.
    this.#breaker.shutdown();
    this.#breaker = makeBreaker(true);
    this.#options.changed();
  }

  #close(): void {
    this.#faults = 0;
    this.#breaker.close();
    this.#options.changed();
  }

  #clearReset(): void {
    this.#reset?.timer[Symbol.dispose]();
    this.#reset = undefined;
  }
}

/** A breaker that opens and closes when it is told to, lets one attempt through half-open, and has no timer closed. */
function makeBreaker(halfOpen: boolean): CircuitBreaker<[trial: Promise<void>], void> {
  const options = {
    timeout: false as const,
    resetTimeout: NEVER_MS,
    // Never reached, so that it does not open by itself.
    volumeThreshold: Number.MAX_SAFE_INTEGER,
    rollingCountBuckets: 1,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
    // One that never speaks, in place of a timer.
    rotateBucketController: new EventEmitter(),
    ...(halfOpen ? { state: { closed: false, halfOpen: true } } : {}),
  };
  return new CircuitBreaker((trial: Promise<void>) => trial, options);
}
