/** Stands in place of what is masked. */
export const MASK = "***";

/** A stretch of text to mask. */
interface Span {
  readonly start: number;
  readonly end: number;
  /** Its mask was let go already, with the beginning of it. */
  readonly shown: boolean;
}

/** Text that comes in pieces and is let go in pieces, with stretches of it masked. Places count from what was not let go. */
export class MaskedText {
  #held = "";
  /** In order, apart from each other. */
  #spans: Span[] = [];

  /** What was not let go. */
  get held(): string {
    return this.#held;
  }

  append(piece: string): void {
    this.#held += piece;
  }

  /** Masks from here to there, as one with what it overlaps. `shown`: it goes on with what has its mask already. */
  cover(start: number, end: number, shown = false): void {
    let from = start;
    let told = shown;
    for (let last = this.#spans.at(-1); last !== undefined && last.end > from; last = this.#spans.at(-1)) {
      from = Math.min(from, last.start);
      told = last.start < start ? last.shown : told || last.shown;
      this.#spans.pop();
    }
    this.#spans.push({ start: from, end, shown: told });
  }

  /** Lets go of the text before `limit`, masked; a span that reaches over it shows its mask now. */
  release(limit: number): string {
    const text = this.#held;
    const rest: Span[] = [];
    let out = "";
    let from = 0;
    for (const span of this.#spans) {
      if (span.start >= limit) {
        rest.push({ ...span, start: span.start - limit, end: span.end - limit });
        continue;
      }
      out += text.slice(from, span.start) + (span.shown ? "" : MASK);
      from = Math.min(span.end, limit);
      if (span.end > limit) rest.push({ start: 0, end: span.end - limit, shown: true });
    }
    out += text.slice(from, limit);
    this.#spans = rest;
    this.#held = text.slice(limit);
    return out;
  }
}
