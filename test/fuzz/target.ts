import type { Dice } from "./dice.ts";

/** Something that inputs are thrown at. `Input` is plain JSON, so that one can be kept as a file. */
export interface FuzzTarget<Input> extends AsyncDisposable {
  /** Makes an input; the same for the same dice. */
  make(dice: Dice): Input;
  /** Tries an input. Throws where a promise is broken, and says which. */
  check(input: Input): void | Promise<void>;
  /** What can only be told at the end, such as what is still open. */
  settle(): void | Promise<void>;
  /** Whether a failure is of the input alone, so that a smaller one can be looked for. */
  readonly shrinks: boolean;
  /** How inputs came out, by a word for it: a run in which all are refused at once shows nothing. */
  readonly outcomes: Outcomes;
  /** Resident memory of the process under test in bytes; 0 where the system does not tell. */
  residentBytes(): number;
}

/** A promise that an input broke. */
class Finding extends Error {
  /** `facts` go into the message as JSON. */
  constructor(promise: string, facts?: unknown) {
    super(facts === undefined ? promise : `${promise}: ${JSON.stringify(facts, readable)?.slice(0, 2_000)}`);
    this.name = "Finding";
  }
}

/** @throws Finding where the fact does not hold. */
export function holds(fact: boolean, promise: string, facts?: unknown): asserts fact {
  if (!fact) throw new Finding(promise, facts);
}

function readable(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}

/** Counts by word. */
export class Outcomes {
  readonly #counts = new Map<string, number>();

  count(word: string): void {
    this.#counts.set(word, this.of(word) + 1);
  }

  /** Keeps the largest. */
  most(word: string, value: number): void {
    this.#counts.set(word, Math.max(this.of(word), Math.ceil(value)));
  }

  of(word: string): number {
    return this.#counts.get(word) ?? 0;
  }

  /** `accepted 12, refused 30`. */
  toString(): string {
    return [...this.#counts].map(([word, count]) => `${word} ${count}`).join(", ");
  }
}

/** Processor time of this thread that work takes, in milliseconds. */
export function threadMs(work: () => void): number {
  const start = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1_000;
}
