import type { ResultNotice } from "../core/call.ts";
import { HiddenText, mayHide } from "../core/hidden-text.ts";
import type { RedactionStream, Redactor } from "../core/secrets.ts";
import { wellFormed } from "../core/text.ts";

/** Most code points that a notice names. */
const MAX_SHOWN = 10;

/** How a cleaner works. */
export interface CleanerOptions {
  /** Whether a text can hold what none of its parts does, so that a whole cannot stand for its parts. Default false. */
  readonly byParts?: boolean;
  /** Whether characters that are not seen stay as they are, instead of being shown. Default false. */
  readonly keepHidden?: boolean;
}

/** Makes the texts of one result fit to leave the gateway, and knows what it did to them. */
export class TextCleaner {
  /** Whether a text can hold what none of its parts does, so that a whole cannot stand for its parts. */
  readonly byParts: boolean;
  readonly #redactor: Redactor;
  readonly #hidden: HiddenText | undefined;
  #masked = false;

  constructor(redactor: Redactor, { byParts = false, keepHidden = false }: CleanerOptions = {}) {
    this.#redactor = redactor;
    this.byParts = byParts;
    this.#hidden = keepHidden ? undefined : new HiddenText();
  }

  /** Whether a text would stay as it is; nothing is noted of it. */
  isClean(text: string): boolean {
    return !(this.#hidden !== undefined && mayHide(text)) && this.#redactor.text(text) === text;
  }

  /** The text, well-formed, with secrets masked and what is not seen shown. */
  text(text: string): string {
    const whole = wellFormed(text);
    const clean = this.#redactor.text(whole);
    this.#masked ||= clean !== whole;
    this.#hidden?.restart();
    return this.#hidden?.next(clean) ?? clean;
  }

  /** The same for text that comes in pieces. */
  stream(): RedactionStream {
    const redaction = this.#redactor.stream();
    // What was taken in and not yet given out; not kept any more once something was masked.
    let waiting = "";
    const show = (text: string): string => this.#hidden?.next(text) ?? text;
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
        return show(out(redaction.push(whole)));
      },
      end: () => show(out(redaction.end())),
    };
  }

  /** What there is to say of what was done so far. */
  notices(): readonly ResultNotice[] {
    const notices: ResultNotice[] = [];
    if (this.#masked)
      notices.push({ reason: "MASKED", message: "Secrets, or what has the shape of one, stand as ***." });
    const shown = [...(this.#hidden?.shown ?? [])];
    if (shown.length > 0) {
      const more = shown.length > MAX_SHOWN ? " and others" : "";
      const message = `Characters that are not seen, or turn text around, stand as their numbers: ${shown.slice(0, MAX_SHOWN).join(", ")}${more}.`;
      notices.push({ reason: "HIDDEN_CHARACTERS", message });
    }
    return notices;
  }
}
