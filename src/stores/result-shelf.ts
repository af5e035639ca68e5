import type { KeptResult } from "../core/results.ts";
import { type IndexedResult, MAX_GONE, MAX_RESULTS, type ResultIndex } from "./result-index.ts";

/** Bytes on disk, at most. */
export interface ShelfLimits {
  /** Of all results. */
  readonly maxBytes: number;
  /** Of one principal's. */
  readonly principalBytes: number;
}

/** Outcome of asking for room, and the ids of what had to go. */
export interface Taken {
  readonly taken: boolean;
  readonly evicted: readonly string[];
}

/** Why a result is gone, for people. */
const WHY = { expired: "its time is over", evicted: "newer results needed its room", damaged: "it cannot be read" };

/** Which results there are and whose, with room kept for those being written. Throws what the index throws. */
export class ResultShelf {
  readonly #limits: ShelfLimits;
  readonly #index: ResultIndex;
  /** Oldest first. */
  readonly #kept = new Map<string, IndexedResult>();
  readonly #gone = new Map<string, IndexedResult>();
  /** Bytes of each principal, those being written included. */
  readonly #used = new Map<string, number>();
  #usedBytes = 0;

  constructor(index: ResultIndex, limits: ShelfLimits) {
    this.#index = index;
    this.#limits = limits;
    for (const result of index.load()) {
      if (result.gone !== "") this.#gone.set(result.id, result);
      else {
        this.#kept.set(result.id, result);
        this.#use(result.principal, result.bytes);
      }
    }
  }

  /** Ids of what is kept. */
  get ids(): ReadonlySet<string> {
    return new Set(this.#kept.keys());
  }

  get nextExpiryMs(): number | undefined {
    let next: number | undefined;
    for (const { expireTimeMs } of this.#kept.values()) next = Math.min(next ?? expireTimeMs, expireTimeMs);
    return next;
  }

  find(id: string): IndexedResult | undefined {
    return this.#kept.get(id);
  }

  findGone(id: string): IndexedResult | undefined {
    return this.#gone.get(id);
  }

  /**
   * Takes bytes for a principal where there is room or can be made: the principal's own oldest results go first, then
   * the oldest of who has most, if that is more than the principal has.
   */
  take(principal: string, bytes: number): Taken {
    const { maxBytes, principalBytes } = this.#limits;
    const evicted: string[] = [];
    const evict = (owner: string): boolean => {
      const oldest = this.#oldestOf(owner);
      if (oldest === undefined) return false;
      this.#forget(oldest, WHY.evicted);
      evicted.push(oldest.id);
      return true;
    };
    const largest = (): string => {
      const owner = this.#largestOwner();
      return this.#usedBy(owner) > this.#usedBy(principal) + bytes ? owner : principal;
    };
    while (this.#usedBy(principal) + bytes > principalBytes) if (!evict(principal)) return { taken: false, evicted };
    while (this.#usedBytes + bytes > maxBytes) if (!evict(largest())) return { taken: false, evicted };
    while (this.#kept.size >= MAX_RESULTS) evict(this.#largestOwner());
    this.#use(principal, bytes);
    return { taken: true, evicted };
  }

  /** Gives back what was taken. */
  giveBack(principal: string, bytes: number): void {
    this.#use(principal, -bytes);
  }

  /** Puts a result on record whose bytes were taken. */
  add(result: IndexedResult): void {
    this.#index.put(result);
    this.#kept.set(result.id, result);
  }

  /** Forgets what is over; returns the ids. */
  expire(nowMs: number): readonly string[] {
    const over = [...this.#kept.values()].filter(({ expireTimeMs }) => expireTimeMs <= nowMs);
    for (const result of over) this.#forget(result, WHY.expired);
    return over.map(({ id }) => id);
  }

  /** Forgets a result that cannot be read. */
  damaged(result: IndexedResult): void {
    if (this.#kept.has(result.id)) this.#forget(result, WHY.damaged);
  }

  #forget(result: IndexedResult, gone: string): void {
    this.#kept.delete(result.id);
    this.#use(result.principal, -result.bytes);
    const note = { ...result, gone };
    this.#gone.set(result.id, note);
    this.#index.put(note);
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= MAX_GONE) break;
      this.#gone.delete(oldest);
      this.#index.remove(oldest);
    }
  }

  #oldestOf(principal: string): IndexedResult | undefined {
    for (const result of this.#kept.values()) if (result.principal === principal) return result;
    return undefined;
  }

  /** Who has most bytes among those that have a result. */
  #largestOwner(): string {
    const owners = new Set([...this.#kept.values()].map(({ principal }) => principal));
    let largest = "";
    for (const owner of owners) if (largest === "" || this.#usedBy(owner) > this.#usedBy(largest)) largest = owner;
    return largest;
  }

  #usedBy(principal: string): number {
    return this.#used.get(principal) ?? 0;
  }

  #use(principal: string, bytes: number): void {
    const used = this.#usedBy(principal) + bytes;
    if (used === 0) this.#used.delete(principal);
    else this.#used.set(principal, used);
    this.#usedBytes += bytes;
  }
}

/** What others may know of a result. */
export function factsOf(result: IndexedResult): KeptResult {
  const { sealed: _sealed, gone: _gone, ...facts } = result;
  return facts;
}
