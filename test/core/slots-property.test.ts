import { deepStrictEqual, ok } from "node:assert/strict";
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { type Slot, Slots } from "../../src/core/slots.ts";
import { createFakeClock, type FakeClock } from "./fake-clock.ts";
import { createRandom } from "./random.ts";

const OPERATIONS = 120;
const MAX_WAITING = 6;
const MAX_LIMIT = 3;

interface Taker {
  readonly number: number;
  readonly leave: AbortController;
  state: "waiting" | "held" | "gone";
}

/** Random takes, returns, cancels, time limits and changes of the limit, held against what must be true of each. */
class Machine {
  readonly clock: FakeClock = createFakeClock();
  readonly #random: () => number;
  readonly #slots: Slots;
  readonly #takers: Taker[] = [];
  readonly #held = new Map<Taker, Slot>();
  readonly #overtaken: number[] = [];
  #limit = 2;

  constructor(seed: number) {
    this.#random = createRandom(seed);
    this.#slots = new Slots({ limit: this.#limit, maxWaiting: MAX_WAITING }, this.clock);
  }

  async step(): Promise<void> {
    const choice = this.#random();
    if (choice < 0.45) this.#take();
    else if (choice < 0.7) this.#giveBack();
    else if (choice < 0.85) this.#pick("waiting")?.leave.abort(new Error("left"));
    else if (choice < 0.95) await this.clock.advance(Math.ceil(this.#random() * 20));
    else this.#setLimit(1 + Math.floor(this.#random() * MAX_LIMIT));
    await this.clock.advance(0);
    this.#check();
  }

  async end(): Promise<void> {
    for (const taker of this.#takers) taker.leave.abort(new Error("over"));
    await this.clock.advance(0);
    for (const slot of this.#held.values()) slot[Symbol.dispose]();
    await this.clock.advance(0);
    deepStrictEqual([this.#slots.held, this.#slots.waiting, this.clock.pending], [0, 0, 0]);
    for (const { leave } of this.#takers) deepStrictEqual(getEventListeners(leave.signal, "abort"), []);
  }

  #take(): void {
    const taker: Taker = { number: this.#takers.length, leave: new AbortController(), state: "waiting" };
    const wasFull = this.#slots.waiting === MAX_WAITING;
    const timed = this.#random() < 0.3 ? { maxWaitMs: 1 + Math.floor(this.#random() * 15) } : {};
    const wait = { signal: taker.leave.signal, refused: ({ why }: { why: string }) => new Error(why), ...timed };
    try {
      const taken = this.#slots.take(wait);
      this.#takers.push(taker);
      if (!(taken instanceof Promise)) {
        deepStrictEqual(this.#all("waiting"), [taker]);
        this.#hold(taker, taken);
        return;
      }
      taken.then(
        (slot) => {
          // Whoever came before and did not go has its slot already.
          if (this.#all("waiting")[0] !== taker) this.#overtaken.push(taker.number);
          this.#hold(taker, slot);
        },
        () => {
          taker.state = "gone";
        },
      );
    } catch (error) {
      deepStrictEqual([wasFull, error], [true, new Error("full")]);
    }
  }

  #hold(taker: Taker, slot: Slot): void {
    taker.state = "held";
    this.#held.set(taker, slot);
  }

  #giveBack(): void {
    const taker = this.#pick("held");
    if (taker === undefined) return;
    const slot = this.#held.get(taker);
    taker.state = "gone";
    this.#held.delete(taker);
    slot?.[Symbol.dispose]();
    if (this.#random() < 0.2) slot?.[Symbol.dispose]();
  }

  #setLimit(limit: number): void {
    this.#limit = limit;
    this.#slots.setLimits({ limit, maxWaiting: MAX_WAITING });
  }

  #check(): void {
    const [held, waiting] = [this.#all("held").length, this.#all("waiting").length];
    deepStrictEqual([this.#slots.held, this.#slots.waiting, this.#overtaken], [held, waiting, []]);
    ok(waiting <= MAX_WAITING);
    // Nobody waits while there is a slot: a lower limit may be exceeded by those that have theirs.
    ok(waiting === 0 || held >= this.#limit);
    ok(held <= MAX_LIMIT);
  }

  #all(state: Taker["state"]): readonly Taker[] {
    return this.#takers.filter((taker) => taker.state === state);
  }

  #pick(state: Taker["state"]): Taker | undefined {
    const all = this.#all(state);
    return all[Math.floor(this.#random() * all.length)];
  }
}

test("in any order of takes, returns, cancels and time limits no slot is given twice, out of turn or never", async () => {
  const failed: unknown[] = [];
  for (let seed = 1; seed <= 40; seed++) {
    const machine = new Machine(seed);
    const run = async (): Promise<void> => {
      for (let i = 0; i < OPERATIONS; i++) await machine.step();
      await machine.end();
    };
    await run().catch((error: unknown) => failed.push({ seed, error }));
  }
  expect(failed).toEqual([]);
});
