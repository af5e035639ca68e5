import type { EarlyStopRule } from "../core/call.ts";
import type { RedactionStream } from "../core/secrets.ts";
import { codePointCount, headIndex } from "../core/text.ts";
import type { EarlyStop } from "./early-stop.ts";

/** Text that comes in pieces: cleaned, and ended at a number of code points. */
export class DeltaText {
  readonly #clean: RedactionStream;
  readonly #limit: number;
  readonly #stop: EarlyStop | undefined;
  #length = 0;
  #cut = false;

  constructor(clean: RedactionStream, limit: number, stop?: EarlyStop) {
    this.#clean = clean;
    this.#limit = limit;
    this.#stop = stop;
  }

  /** Whether text was left out because the limit was reached. */
  get cut(): boolean {
    return this.#cut;
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
    const room = this.room;
    this.#length += Math.min(length, room);
    if (length <= room) return text;
    this.#cut = true;
    return text.slice(0, headIndex(text, room));
  }
}
