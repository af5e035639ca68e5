import type { RedactionStream, Redactor } from "../core/secrets.ts";
import { createPatternRedactor } from "./pattern-redactor.ts";

/** A redactor of patterns that can be others from a moment on; a stream keeps to those that it began with. */
export class LivePatterns implements Redactor {
  #patterns: readonly string[] = [];
  #redactor: Redactor | undefined;

  take(patterns: readonly string[]): void {
    if (patterns.join("\n") === this.#patterns.join("\n")) return;
    this.#patterns = patterns;
    this.#redactor = patterns.length === 0 ? undefined : createPatternRedactor(patterns);
  }

  text(value: string): string {
    return this.#redactor?.text(value) ?? value;
  }

  stream(): RedactionStream {
    return this.#redactor?.stream() ?? { push: (piece) => piece, end: () => "" };
  }
}
