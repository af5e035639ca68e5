import type { Claim } from "./tool-entry.ts";

/** A source that has a place in the row for a name. */
export interface Holder {
  readonly source: string;
  /** Absent: the name is kept free for a registration that is being written. */
  readonly claim: Claim | undefined;
}

/** Who declares which name, in the order they came. The first has the name; it serves until it goes away. */
export class Claims {
  readonly #byName = new Map<string, readonly Holder[]>();

  /** All that hold or wait for a name, the one that has it first. */
  of(name: string): readonly Holder[] {
    return this.#byName.get(name) ?? [];
  }

  /** Who has a name. */
  first(name: string): Holder | undefined {
    return this.of(name)[0];
  }

  /** Gives a source its place in the row; a source that has one keeps it. */
  set(name: string, holder: Holder): void {
    const row = this.of(name);
    const known = row.some((other) => other.source === holder.source);
    const next = known ? row.map((other) => (other.source === holder.source ? holder : other)) : [...row, holder];
    this.#byName.set(name, next);
  }

  /** Takes a source out of the row. */
  remove(name: string, source: string): void {
    const row = this.of(name).filter((holder) => holder.source !== source);
    if (row.length === 0) this.#byName.delete(name);
    else this.#byName.set(name, row);
  }
}
