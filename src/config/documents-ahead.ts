import type { DocumentOutcome } from "./parse-document.ts";

/** Most documents that wait for who asks for them. Each is asked for right after it was read. */
const MAX_WAITING = 4;

/** Documents that were read ahead, until they are asked for. */
export class DocumentsAhead {
  /** By format and text. */
  readonly #waiting = new Map<string, DocumentOutcome>();

  /** Keeps what a text came to. The oldest gives way. */
  keep(text: string, format: "yaml" | "json", outcome: DocumentOutcome): void {
    this.#waiting.set(`${format} ${text}`, outcome);
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= MAX_WAITING) break;
      this.#waiting.delete(oldest);
    }
  }

  /** What a text came to, once; `undefined`: it was not read ahead. */
  take(text: string, format: "yaml" | "json"): DocumentOutcome | undefined {
    if (this.#waiting.size === 0) return undefined;
    const key = `${format} ${text}`;
    const outcome = this.#waiting.get(key);
    this.#waiting.delete(key);
    return outcome;
  }
}
