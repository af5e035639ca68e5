/** Entries looked at for one that can go without loss. */
const LOOKED_AT = 16;

/**
 * State by key that outlives those who use it, such as the versions of a tool. Bounded: when it is full, the one that
 * has not been asked for the longest goes, or one near it that is at rest, so that nothing is lost.
 */
export class StateTable<S> {
  readonly #entries = new Map<string, S>();
  readonly #max: number;
  readonly #isAtRest: (state: S) => boolean;

  constructor(max: number, isAtRest: (state: S) => boolean) {
    this.#max = max;
    this.#isAtRest = isAtRest;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The state of a key, made where there is none. */
  of(key: string, make: () => S): S {
    const found = this.#entries.get(key);
    const state = found ?? make();
    if (found === undefined) this.#makeRoom();
    else this.#entries.delete(key);
    this.#entries.set(key, state);
    return state;
  }

  /** The state of a key, where there is one. */
  find(key: string): S | undefined {
    return this.#entries.get(key);
  }

  #makeRoom(): void {
    if (this.#entries.size < this.#max) return;
    let oldest: string | undefined;
    let looked = 0;
    for (const [key, state] of this.#entries) {
      oldest ??= key;
      if (this.#isAtRest(state)) {
        this.#entries.delete(key);
        return;
      }
      if (++looked === LOOKED_AT) break;
    }
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
