import type { ResultNotice } from "../core/call.ts";
import type { RedactionStream, Redactor } from "../core/secrets.ts";
import { wellFormed } from "../core/text.ts";

/** Makes the texts of one result fit to leave the gateway, and knows what it did to them. */
export class TextCleaner {
  /** Whether a text can hold what none of its parts does, so that a whole cannot stand for its parts. */
  readonly byParts: boolean;
  readonly #redactor: Redactor;
  #masked = false;

  constructor(redactor: Redactor, byParts = false) {
    this.#redactor = redactor;
    this.byParts = byParts;
  }

  /** Whether a text would stay as it is; nothing is noted of it. */
  isClean(text: string): boolean {
    return this.#redactor.text(text) === text;
  }

  /** The text, well-formed, with secrets masked. */
  text(text: string): string {
    const whole = wellFormed(text);
    const clean = this.#redactor.text(whole);
    this.#masked ||= clean !== whole;
    return clean;
  }

  /** The same for text that comes in pieces. */
  stream(): RedactionStream {
    const redaction = this.#redactor.stream();
    // What was taken in and not yet given out; not kept any more once something was masked.
    let waiting = "";
    const out = (text: string): string => {
      if (!this.#masked) {
        this.#masked = !waiting.startsWith(text);
        waiting = this.#masked ? "" : waiting.slice(text.length);
      }
      return text;
    };
    return {
      push: (piece) => {
        const whole = wellFormed(piece);
        if (!this.#masked) waiting += whole;
        return out(redaction.push(whole));
      },
      end: () => out(redaction.end()),
    };
  }

  /** What there is to say of what was done so far. */
  notices(): readonly ResultNotice[] {
    if (!this.#masked) return [];
    return [{ reason: "MASKED", message: "Secrets, or what has the shape of one, stand as ***." }];
  }
}
