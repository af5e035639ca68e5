import { createRandom } from "../core/random.ts";

/** Chances that come out the same for the same seed. */
export interface Dice {
  /** From 0 to below 1. */
  roll(): number;
  /** Whether something with this chance happens. */
  chance(share: number): boolean;
  /** A whole number, both ends included. */
  between(least: number, most: number): number;
  oneOf<T>(choices: readonly [T, ...T[]]): T;
}

export function createDice(seed: number): Dice {
  const roll = createRandom(seed);
  const between = (least: number, most: number): number => least + Math.floor(roll() * (most - least + 1));
  return {
    roll,
    chance: (share) => roll() < share,
    between,
    oneOf: (choices) => choices[between(0, choices.length - 1)] ?? choices[0],
  };
}
