import { compileSearch, type LinearSearch } from "../core/linear-search.ts";
import type { RedactionStream, Redactor } from "../core/secrets.ts";
import { MASK } from "./masked-text.ts";

/** Longest line that a stream keeps back. */
const MAX_LINE = 4_096;

/**
 * A redactor of what matches any of the patterns; those that cannot be compiled count for nothing. A stream is masked
 * line by line, of at most 4,096 characters: what matches over the end of one is not found there.
 */
export function createPatternRedactor(patterns: readonly string[]): Redactor {
  const searches = patterns.flatMap((pattern) => {
    const outcome = compileSearch(pattern);
    return outcome.ok ? [outcome.search] : [];
  });
  const text = (value: string): string => searches.reduce(maskMatches, value);
  return { text, stream: () => new LineByLine(text) };
}

function maskMatches(text: string, search: LinearSearch): string {
  let out = "";
  let from = 0;
  for (const { start, end } of search.all(text)) {
    out += text.slice(from, start) + MASK;
    from = end;
  }
  return from === 0 ? text : out + text.slice(from);
}

class LineByLine implements RedactionStream {
  readonly #mask: (text: string) => string;
  #held = "";

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  push(piece: string): string {
    this.#held += piece;
    const line = this.#held.lastIndexOf("\n") + 1;
    return this.#let(this.#held.length - line > MAX_LINE ? this.#held.length : line);
  }

  end(): string {
    return this.#let(this.#held.length);
  }

  #let(limit: number): string {
    const out = this.#mask(this.#held.slice(0, limit));
    this.#held = this.#held.slice(limit);
    return out;
  }
}
