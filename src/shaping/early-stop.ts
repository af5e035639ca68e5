import type { EarlyStopRule } from "../core/call.ts";
import { compileSearch, type LinearSearch } from "../core/linear-search.ts";
import type { EarlyStopRules } from "../core/shaper.ts";
import { codePointCount, headIndex } from "../core/text.ts";
import { CHARACTERS_PER_TOKEN } from "./tokens.ts";

/** How much of what was given already a match may begin in, in characters. */
const WINDOW = 1_024;

/** Where a piece ends a stream, and by which rule. */
interface Stop {
  readonly at: number;
  readonly rule: EarlyStopRule;
}

/** Ends a text that comes in pieces as soon as a rule says that it is enough. */
export class EarlyStop {
  readonly #rules: EarlyStopRules;
  readonly #search: LinearSearch | undefined;
  #window = "";
  #length = 0;
  /** In thirds of a token. */
  #tokens = 0;
  #rule: EarlyStopRule | undefined;

  constructor(rules: EarlyStopRules) {
    this.#rules = rules;
    const compiled = rules.match === undefined ? undefined : compileSearch(rules.match);
    this.#search = compiled?.ok === true ? compiled.search : undefined;
  }

  /** The rule that ended the text; absent: it goes on. */
  get rule(): EarlyStopRule | undefined {
    return this.#rule;
  }

  /** What of a piece is still to be given. */
  take(piece: string): string {
    const stops = [this.#byMatch(piece), this.#byLength(piece), this.#byTokens(piece)].filter(
      (stop) => stop !== undefined,
    );
    const first = stops.toSorted((a, b) => a.at - b.at)[0];
    this.#rule = first?.rule;
    return first === undefined ? piece : piece.slice(0, first.at);
  }

  #byMatch(piece: string): Stop | undefined {
    if (this.#search === undefined) return undefined;
    const text = this.#window + piece;
    const match = this.#search.first(text);
    const at = match === undefined ? 0 : match.end - this.#window.length;
    this.#window = text.slice(-WINDOW);
    return match === undefined ? undefined : { at: Math.max(0, at), rule: "match" };
  }

  #byLength(piece: string): Stop | undefined {
    const { maxLength } = this.#rules;
    if (maxLength === undefined) return undefined;
    const room = maxLength - this.#length;
    this.#length += codePointCount(piece);
    return this.#length < maxLength ? undefined : { at: headIndex(piece, room), rule: "max_length" };
  }

  #byTokens(piece: string): Stop | undefined {
    const { maxTokens } = this.#rules;
    if (maxTokens === undefined) return undefined;
    let at = 0;
    for (const sign of piece) {
      at += sign.length;
      this.#tokens += sign < "\u0080" ? 1 : CHARACTERS_PER_TOKEN;
      if (this.#tokens >= maxTokens * CHARACTERS_PER_TOKEN) return { at, rule: "max_tokens" };
    }
    return undefined;
  }
}
