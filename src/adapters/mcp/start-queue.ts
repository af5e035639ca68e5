import type { Clock } from "../../core/clock.ts";

/** How long a start is one of those that begin; one that is not over by then is slow, or hangs. */
const BEGIN_MS = 200;

/** How long one that is slow is counted as such: longer than most need, and no hanging one is waited for beyond it. */
const SLOW_MS = 10_000;

/** How many may be slow for each that may begin. */
const SLOW_FACTOR = 5;

/** How often the machine is looked at while somebody waits. */
const LOOK_MS = 50;

/** Cores without work from which on one more start takes nothing from those that go on. */
const IDLE_CORES = 0.5;

/** The turn of one start. Disposing gives it back, or leaves the line. */
export interface StartTurn extends Disposable {
  /** Resolves when the start may begin. */
  readonly mine: Promise<void>;
  /** Somebody waits for it: it goes before those that nobody waits for. */
  hurry(): void;
}

/** What a line is made from. */
export interface StartQueueOptions {
  /** Most starts that begin at a time. */
  readonly atOnce: number;
  /** Cores that had nothing to do since it was asked last. */
  idleCores(): number;
}

/**
 * The line of servers that start. Starting takes the machine's cores: many at once make each slower, and the first one as
 * slow as the last. One that hangs takes nothing and is over late or never, so that it must not keep its place: whatever
 * is not over soon makes room for the next and is counted apart, five such for each place at most; and where the machine
 * has nothing to do, all that have a place hang, and none of them is waited for.
 */
export class StartQueue {
  readonly #options: StartQueueOptions;
  /** Those that begin and those that are slow, each with the end of that. */
  readonly #beginning = new Map<Turn, Disposable>();
  readonly #slow = new Map<Turn, Disposable>();
  /** Those of them who have been so since the last look. */
  #settled: readonly Turn[] = [];
  readonly #waiting: Turn[] = [];
  #look: Disposable | undefined;

  constructor(options: StartQueueOptions) {
    this.#options = options;
  }

  /** Takes the end of the line. */
  enter(clock: Clock): StartTurn {
    const turn = new Turn(clock, {
      hurry: () => {
        if (this.#leave(turn)) this.#waiting.splice(this.#hurried(), 0, turn);
      },
      leave: () => {
        if (!this.#leave(turn)) this.#free([turn]);
      },
    });
    this.#waiting.push(turn);
    this.#fill();
    return turn;
  }

  /** How many hurry already: they keep their order. */
  #hurried(): number {
    const first = this.#waiting.findIndex((each) => !each.hurries);
    return first < 0 ? this.#waiting.length : first;
  }

  /** Whether it was in the line. */
  #leave(turn: Turn): boolean {
    const place = this.#waiting.indexOf(turn);
    if (place >= 0) this.#waiting.splice(place, 1);
    return place >= 0;
  }

  #free(turns: readonly Turn[]): void {
    for (const turn of turns) {
      for (const places of [this.#beginning, this.#slow]) {
        places.get(turn)?.[Symbol.dispose]();
        places.delete(turn);
      }
    }
    this.#fill();
  }

  #fill(): void {
    const { atOnce } = this.#options;
    while (this.#beginning.size < atOnce && this.#slow.size < SLOW_FACTOR * atOnce) {
      const turn = this.#waiting.shift();
      if (turn === undefined) break;
      this.#beginning.set(
        turn,
        turn.clock.after(BEGIN_MS, () => this.#isSlow(turn)),
      );
      turn.begin();
    }
    this.#watch();
  }

  #isSlow(turn: Turn): void {
    this.#beginning.delete(turn);
    this.#slow.set(
      turn,
      turn.clock.after(SLOW_MS, () => this.#free([turn])),
    );
    this.#fill();
  }

  /** Looks at the machine for as long as somebody waits. */
  #watch(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#look?.[Symbol.dispose]();
      this.#look = undefined;
      return;
    }
    if (this.#look !== undefined) return;
    this.#options.idleCores();
    this.#settled = [...this.#beginning.keys(), ...this.#slow.keys()];
    this.#look = next.clock.after(LOOK_MS, () => {
      this.#look = undefined;
      this.#free(this.#options.idleCores() >= IDLE_CORES ? this.#settled : []);
    });
  }
}

class Turn implements StartTurn {
  readonly clock: Clock;
  readonly #acts: { hurry(): void; leave(): void };
  readonly #mine = Promise.withResolvers<void>();
  hurries = false;

  constructor(clock: Clock, acts: { hurry(): void; leave(): void }) {
    this.clock = clock;
    this.#acts = acts;
  }

  get mine(): Promise<void> {
    return this.#mine.promise;
  }

  begin(): void {
    this.#mine.resolve();
  }

  hurry(): void {
    if (this.hurries) return;
    this.#acts.hurry();
    this.hurries = true;
  }

  [Symbol.dispose](): void {
    this.#acts.leave();
  }
}
