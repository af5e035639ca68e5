import type { RedactionStream } from "../core/secrets.ts";
import { codePointCount, headIndex } from "../core/text.ts";

/** Text that comes in pieces: cleaned, and ended at a number of code points. */
export class DeltaText {
  readonly #clean: RedactionStream;
  readonly #limit: number;
  #length = 0;
  #cut = false;

  constructor(clean: RedactionStream, limit: number) {
    this.#clean = clean;
    this.#limit = limit;
  }

  /** Whether text was left out because the limit was reached. */
  get cut(): boolean {
    return this.#cut;
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

  #within(text: string): string {
    const length = codePointCount(text);
    const room = this.room;
    this.#length += Math.min(length, room);
    if (length <= room) return text;
    this.#cut = true;
    return text.slice(0, headIndex(text, room));
  }
}
