import type { Clock } from "../core/clock.ts";

/** How long a result that would be shortened waits for those of other calls of its turn. */
const GATHER_MS = 200;

/** How exactly a level is found: to a part of the turn that is less than any character. */
const HALVINGS = 40;

/** What sums of parts may be off. */
const ROUNDING = 1e-9;

/** One call's place in a turn. Disposing it tells that the call has ended: what it did not take is for the others. */
export interface TurnPlace extends Disposable {
  /** Which part of the turn the call may take yet; from 0 to 1. */
  readonly room: number;
  /** The call gave away so much of the turn. */
  take(part: number): void;
  /**
   * The call has a result that needs so much. Resolves when it is known how much of it there is room for: at once where
   * that is all of it, else when all calls of the turn that run have a result too, after 200 ms, or when the signal aborts.
   */
  claim(part: number, signal: AbortSignal): Promise<void>;
}

/**
 * What the calls of one turn may give together; the whole of it is 1. Each running call has an equal part, and where one
 * needs less, the others have the rest: so of results that wait together the largest are shortened first. What was given
 * away cannot be taken back.
 */
export class ModelTurn {
  readonly #clock: Clock;
  readonly #running = new Set<Place>();
  /** What calls that have ended have taken. */
  #gone = 0;
  #level: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a call of the turn runs. */
  get busy(): boolean {
    return this.#running.size > 0;
  }

  /** A call of the turn begins. */
  open(): TurnPlace {
    const place = new Place(this);
    this.#running.add(place);
    this.changed();
    return place;
  }

  /** The call of the place has ended. */
  close(place: Place): void {
    if (!this.#running.delete(place)) return;
    this.#gone += place.taken;
    this.changed();
  }

  /** Somebody's needs are others than they were. */
  changed(): void {
    this.#level = undefined;
    for (const place of this.#running) place.look();
  }

  /** Whether all running calls have said what they need. */
  get settled(): boolean {
    for (const { need } of this.#running) if (need === undefined) return false;
    return true;
  }

  /** Most that each running call may have in all. */
  get level(): number {
    this.#level ??= this.#findLevel();
    return this.#level;
  }

  #findLevel(): number {
    const pool = Math.max(0, 1 - this.#gone) + ROUNDING;
    const used = (level: number): number => {
      let sum = 0;
      for (const { taken, need } of this.#running) sum += Math.max(taken, Math.min(need ?? 1, level));
      return sum;
    };
    if (used(1) <= pool) return 1;
    let low = 0;
    let high = 1;
    for (let i = 0; i < HALVINGS; i++) {
      const middle = (low + high) / 2;
      if (used(middle) <= pool) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Calls `look` when the time of gathering is over. */
  gathering(look: () => void): Disposable {
    return this.#clock.after(GATHER_MS, look);
  }
}

class Place implements TurnPlace {
  readonly #turn: ModelTurn;
  /** Part of the turn that was given away. */
  taken = 0;
  /** What the call needs in all; undefined while nobody knows. */
  need: number | undefined;
  /** Asked whenever something changes, while the call waits. */
  look: () => void = () => undefined;

  constructor(turn: ModelTurn) {
    this.#turn = turn;
  }

  get room(): number {
    return Math.max(0, Math.min(this.need ?? 1, this.#turn.level) - this.taken);
  }

  take(part: number): void {
    this.taken += part;
    if (this.taken > this.#turn.level) this.#turn.changed();
  }

  async claim(part: number, signal: AbortSignal): Promise<void> {
    this.need = Math.min(1, this.taken + part);
    this.#turn.changed();
    if (!this.#known && !signal.aborted) await this.#gather(signal);
    // From here on the others need not reckon with more.
    this.need = Math.min(this.need, Math.max(this.taken, this.#turn.level));
    this.#turn.changed();
  }

  get #known(): boolean {
    return this.#turn.settled || (this.need ?? 1) <= this.#turn.level + ROUNDING;
  }

  async #gather(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onAbort = (): void => resolve();
    using _timer = this.#turn.gathering(resolve);
    signal.addEventListener("abort", onAbort, { once: true });
    this.look = () => {
      if (this.#known) resolve();
    };
    await promise;
    this.look = () => undefined;
    signal.removeEventListener("abort", onAbort);
  }

  [Symbol.dispose](): void {
    this.#turn.close(this);
  }
}
