/** Where a limit begins that nobody knows yet. */
const FIRST_LIMIT = 20;
/** Calls that make a window, and its shortest time. */
const WINDOW_CALLS = 10;
const WINDOW_MS = 100;
/** Windows that the long-term latency looks back over, about. */
const LONG_WINDOWS = 100;
/** How much slower than usual calls may be before the limit falls. */
const TOLERANCE = 1.5;
/** Share of the way to a new limit that is gone at once. */
const SMOOTHING = 0.2;
/** What is left of a limit after a window in which calls failed for overload. */
const BACKED_OFF = 0.9;

/** One call as the limit sees it. */
export interface LatencySample {
  readonly latencyMs: number;
  /** Calls that ran while it did, itself included. */
  readonly inFlight: number;
  /** It failed in a way that overload explains: a time limit, a lost connection, a fault of the upstream. */
  readonly overloaded: boolean;
}

/**
 * A limit of calls at a time that follows latency: it falls as calls get slower than they were in the long run, or fail,
 * and grows while they do not and it is used. Source: the gradient algorithm of Netflix's concurrency-limits ("Gradient2").
 */
export class AdaptiveLimit {
  #limit: number;
  #most: number;
  #longMs: number | undefined;
  #windowEndMs = Number.NEGATIVE_INFINITY;
  #calls = 0;
  #sumMs = 0;
  #mostInFlight = 0;
  #overloaded = false;

  /** @param most ceiling of the limit, at least 1. */
  constructor(most: number) {
    this.#most = most;
    this.#limit = Math.min(FIRST_LIMIT, most);
  }

  /** Most calls at a time now, 1 to the ceiling. */
  get limit(): number {
    return Math.max(1, Math.floor(Math.min(this.#limit, this.#most)));
  }

  /** Another ceiling from now on. */
  setMost(most: number): void {
    this.#most = most;
  }

  /** A call ended. */
  add(sample: LatencySample, nowMs: number): void {
    if (this.#calls === 0) this.#windowEndMs = nowMs + WINDOW_MS;
    this.#calls += 1;
    this.#sumMs += sample.latencyMs;
    this.#mostInFlight = Math.max(this.#mostInFlight, sample.inFlight);
    this.#overloaded ||= sample.overloaded;
    if (this.#calls >= WINDOW_CALLS && nowMs >= this.#windowEndMs) this.#endWindow();
  }

  #endWindow(): void {
    const shortMs = this.#sumMs / this.#calls;
    const isUsed = this.#mostInFlight * 2 >= this.#limit;
    const wasOverloaded = this.#overloaded;
    this.#calls = 0;
    this.#sumMs = 0;
    this.#mostInFlight = 0;
    this.#overloaded = false;
    if (wasOverloaded) {
      this.#limit = Math.max(1, this.#limit * BACKED_OFF);
      return;
    }
    const longMs = this.#follow(shortMs);
    // What is not used says nothing about how much the upstream bears.
    if (!isUsed) return;
    const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * longMs) / shortMs));
    const next = this.#limit * gradient + Math.sqrt(this.#limit);
    this.#limit = Math.max(1, Math.min(this.#most, this.#limit * (1 - SMOOTHING) + next * SMOOTHING));
  }

  /** The long-term latency with one more window. It follows a fall quickly, so that a bad time is not taken for usual. */
  #follow(shortMs: number): number {
    const longMs = this.#longMs ?? shortMs;
    const followed = longMs + (shortMs - longMs) / LONG_WINDOWS;
    this.#longMs = followed > 2 * shortMs ? followed * 0.95 : followed;
    return this.#longMs;
  }
}
