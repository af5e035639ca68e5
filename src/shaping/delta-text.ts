import type { EarlyStopRule } from "../core/call.ts";
import type { RedactionStream } from "../core/secrets.ts";
import { codePointCount, headIndex } from "../core/text.ts";
import type { EarlyStop } from "./early-stop.ts";
import type { BudgetRoom, WindowBudget } from "./window-budget.ts";

/** What may end a text before its end; what is absent does not. */
export interface DeltaEnds {
  readonly stop?: EarlyStop | undefined;
  readonly budget?: WindowBudget | undefined;
}

/** Text that comes in pieces: cleaned, and ended at a number of code points. */
export class DeltaText {
  readonly #clean: RedactionStream;
  readonly #limit: number;
  readonly #stop: EarlyStop | undefined;
  readonly #budget: WindowBudget | undefined;
  #length = 0;
  #cut = false;
  #cutBy: BudgetRoom | undefined;

  constructor(clean: RedactionStream, limit: number, { stop, budget }: DeltaEnds) {
    this.#clean = clean;
    this.#limit = limit;
    this.#stop = stop;
    this.#budget = budget;
  }

  /** Whether text was left out because the limit was reached. */
  get cut(): boolean {
    return this.#cut;
  }

  /** The budget that text was left out for, with how much it let through; absent: none. */
  get cutBy(): BudgetRoom | undefined {
    return this.#cutBy;
  }

  /** The rule that had enough; absent: none. */
  get stopped(): EarlyStopRule | undefined {
    return this.#stop?.rule;
  }

  /** Whether nothing more of the text is wanted. */
  get over(): boolean {
    return this.#cut || this.stopped !== undefined;
  }

  /** Code points that may come in all. */
  get limit(): number {
    return this.#limit;
  }

  /** Code points that may still come. */
  get room(): number {
    return this.#limit - this.#length;
  }

  /** What can go out now. */
  push(piece: string): string {
    return this.#within(this.#clean.push(piece));
  }

  /** What was kept back as the possible beginning of a secret. */
  end(): string {
    return this.#within(this.#clean.end());
  }

  #within(given: string): string {
    const text = this.#stop?.take(given) ?? given;
    const length = codePointCount(text);
    if (length === 0) return text;
    const bound = this.#boundFor(text);
    const room = bound?.characters ?? this.room;
    const fits = length <= room;
    const kept = fits ? text : text.slice(0, headIndex(text, room));
    this.#length += Math.min(length, room);
    this.#budget?.stream(kept);
    if (fits) return text;
    this.#cut = true;
    if (bound !== undefined) this.#cutBy = { ...bound, characters: this.#length };
    return kept;
  }

  /** The budget, where it has less room than the limit. */
  #boundFor(text: string): BudgetRoom | undefined {
    const budget = this.#budget?.room(text);
    return budget !== undefined && budget.characters < this.room ? budget : undefined;
  }
}
