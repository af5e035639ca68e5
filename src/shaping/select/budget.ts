/** Steps that one evaluation may take: a value looked at, copied or compared is a step. Some 20 ms of work. */
export const MAX_STEPS = 500_000;

/** An expression that does not fit what it is evaluated on, or takes too long. */
export class SelectFault extends Error {
  /** `too-much`: the bound on steps is reached; `mismatch`: a function got what it does not take. */
  readonly kind: "too-much" | "mismatch";

  constructor(kind: "too-much" | "mismatch", message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Counts the steps of one evaluation. */
export class Budget {
  #left = MAX_STEPS;

  /** Takes steps. @throws SelectFault where none are left. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new SelectFault("too-much", `more than ${MAX_STEPS} steps`);
  }
}
