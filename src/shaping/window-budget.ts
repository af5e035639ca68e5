import type { CallContext, ResultNotice, ToolCall, ToolResult } from "../core/call.ts";
import type { Clock } from "../core/clock.ts";
import { codePointCount } from "../core/text.ts";
import type { ModelTurn, TurnPlace } from "./model-turn.ts";
import { ModelTurns } from "./model-turns.ts";
import { charactersOfTokens } from "./tokens.ts";

/** What one result, and all results of a turn together, may take of a model's window. */
const OF_RESULT = { percent: 15, floor: 8_000 };
const OF_TURN = { percent: 30, floor: 16_000 };

/** A result of a turn that is used up has so much, so that its mark and its handle have room. */
const LEAST_OF_TURN = 400;

/** What fractions of a turn may be off, in characters. */
const ROUNDING = 1e-4;

/** How much room there is, in code points, and what bounds it. */
export interface BudgetRoom {
  readonly characters: number;
  readonly by: "result" | "turn";
}

/**
 * What one call may give of its model's window: 15 % as its result or as its stream, and its part of the 30 % that the
 * calls of its turn have together, but not less than 8,000 and 16,000 characters. Disposing it ends its part in the turn.
 */
export class WindowBudget implements Disposable {
  readonly window: number;
  readonly #place: TurnPlace | undefined;
  readonly #signal: AbortSignal;
  /** Part of what one result may take that was streamed already, and in characters. */
  #streamed = 0;
  #length = 0;

  constructor(window: number, turn: ModelTurn | undefined, { signal }: Pick<CallContext, "signal">) {
    this.window = window;
    this.#place = turn?.open();
    this.#signal = signal;
  }

  /** Room for such a text as if it were alone in its turn. */
  ofResult(text: string): BudgetRoom {
    const characters = wholeNumber((1 - this.#streamed) * this.#characters(text, OF_RESULT));
    return { characters, by: "result" };
  }

  /** Room for such a text now. */
  room(text: string): BudgetRoom {
    const own = this.ofResult(text);
    if (this.#place === undefined) return own;
    const part = wholeNumber(this.#place.room * this.#characters(text, OF_TURN));
    const characters = Math.max(part, LEAST_OF_TURN - this.#length, 0);
    return characters < own.characters ? { characters, by: "turn" } : own;
  }

  /** The text was streamed. */
  stream(text: string): void {
    const length = codePointCount(text);
    this.#length += length;
    this.#streamed += length / this.#characters(text, OF_RESULT);
    this.#place?.take(length / this.#characters(text, OF_TURN));
  }

  /** Resolves, when it is known ({@link TurnPlace.claim}), with whether the turn has room for all of this result. */
  async claim(result: ToolResult): Promise<boolean> {
    const text = textOf(result);
    const length = codePointCount(text);
    if (this.#place === undefined || this.#length + length <= LEAST_OF_TURN) return true;
    await this.#place.claim(length / this.#characters(text, OF_TURN), this.#signal);
    return this.#place.room * this.#characters(text, OF_TURN) + ROUNDING >= length;
  }

  /** The result was given. */
  give(result: ToolResult): void {
    const text = textOf(result);
    this.#place?.take(codePointCount(text) / this.#characters(text, OF_TURN));
  }

  [Symbol.dispose](): void {
    this.#place?.[Symbol.dispose]();
  }

  #characters(text: string, { percent, floor }: typeof OF_RESULT): number {
    return Math.max(floor, charactersOfTokens(Math.floor((this.window * percent) / 100), text));
  }
}

/** Makes the budgets of calls. */
export class WindowBudgets {
  readonly #window: number | undefined;
  readonly #turns: ModelTurns;

  /** `window`: in tokens, of calls that do not name one; undefined: these have no budget. */
  constructor(window: number | undefined, clock: Clock) {
    this.#window = window;
    this.#turns = new ModelTurns(clock);
  }

  /** The budget of a call that begins; undefined where nobody knows its model's window. */
  open({ modelWindow }: ToolCall, context: CallContext): WindowBudget | undefined {
    const window = modelWindow ?? this.#window;
    return window === undefined ? undefined : new WindowBudget(window, this.#turns.of(context), context);
  }
}

/** What a result says that a budget shortened. */
export function budgetNotice({ characters, by }: BudgetRoom, window: number): ResultNotice {
  return by === "result"
    ? { reason: "RESULT_BUDGET", message: `shortened to ${characters} characters: ${wordsOf(by, window)}` }
    : {
        reason: "TURN_BUDGET",
        message: `shortened to ${characters} characters, the call's part: ${wordsOf(by, window)}`,
      };
}

/** What a budget is, for messages. */
export function wordsOf(by: BudgetRoom["by"], window: number): string {
  const { percent, floor } = by === "result" ? OF_RESULT : OF_TURN;
  const who = by === "result" ? "one result has" : "the results of one turn have";
  return `${who} ${percent} % of the model's window of ${window} tokens, or ${floor} characters if that is more`;
}

function wholeNumber(characters: number): number {
  return Math.max(0, Math.floor(characters + ROUNDING));
}

/** What of a result a model reads as text. */
function textOf({ content, structuredJson, failure }: ToolResult): string {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return [structuredJson, failure?.message, ...texts].filter((text) => text !== undefined).join("\n");
}
