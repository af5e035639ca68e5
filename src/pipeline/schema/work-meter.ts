/** Time that work may take on arguments of any size, in milliseconds. */
const BASE_MS = 15;

/** Further time for each value in the arguments: four times what a plain schema takes. */
const MS_PER_VALUE = 0.002;

/** Most steps for each value that count as work in proportion to the arguments. */
const STEPS_PER_VALUE = 64;

/** How long work goes on at a stretch. */
export interface Slice {
  /** Milliseconds by the clock, after which it pauses. */
  readonly ms: number;
  /** Steps between two looks at the clock. */
  readonly steps: number;
}

/** Long enough for nearly everything, and short enough to be nobody's trouble. */
export const SLICE: Slice = { ms: 5, steps: 16 };

/** Thrown through a validator that has worked for too long. Never leaves this folder. */
export class WorkLimitReached extends Error {}

/**
 * Stops work that takes too long: after 15 ms where it multiplies (many steps for each value), else after 15 ms and
 * 2 µs for each value, since many values take their time however simple the schema. It looks at the clock first and,
 * where that says too long, at the processor time of this thread, since one that merely waited has done nothing wrong.
 * What others do between two slices does not count.
 */
export class WorkMeter {
  readonly #values: number;
  readonly #slice: Slice;
  #steps = 0;
  #nextLook: number;
  #isSpent = false;
  /** When the slice was first looked at. */
  #startMs: number | undefined;
  #startCpu: NodeJS.CpuUsage | undefined;
  /** What the slices before it took. */
  #earlierMs = 0;
  #earlierCpuMs = 0;

  /** @param values how many values the arguments have. */
  constructor(values: number, slice = SLICE) {
    this.#values = values;
    this.#slice = slice;
    this.#nextLook = slice.steps;
  }

  /**
   * One value is held against one schema or pattern. Returns whether the slice is spent: pause where that can be done.
   *
   * @throws WorkLimitReached.
   */
  step(): boolean {
    if (++this.#steps >= this.#nextLook) {
      this.#nextLook += this.#slice.steps;
      this.look();
    }
    return this.#isSpent;
  }

  /** Whether the slice is spent. */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Something that may take long comes. @throws WorkLimitReached when the time since the first look is spent. */
  look(): void {
    const nowMs = performance.now();
    if (this.#startMs === undefined) {
      this.#startMs = nowMs;
      this.#startCpu = process.threadCpuUsage();
    }
    const sliceMs = nowMs - this.#startMs;
    this.#isSpent = sliceMs >= this.#slice.ms;
    const limitMs = this.#limitMs();
    if (this.#earlierMs + sliceMs <= limitMs) return;
    if (this.#earlierCpuMs + this.#sliceCpuMs() > limitMs) throw new WorkLimitReached();
  }

  /** Work begins, or goes on after others had their turn. */
  beginSlice(): void {
    this.#isSpent = false;
    this.#startMs = undefined;
  }

  /** Work pauses. */
  endSlice(): void {
    if (this.#startMs === undefined) return;
    this.#earlierMs += performance.now() - this.#startMs;
    this.#earlierCpuMs += this.#sliceCpuMs();
  }

  #sliceCpuMs(): number {
    const { user, system } = process.threadCpuUsage(this.#startCpu);
    return (user + system) / 1_000;
  }

  #limitMs(): number {
    const multiplies = this.#steps > this.#values * STEPS_PER_VALUE;
    return multiplies ? BASE_MS : BASE_MS + this.#values * MS_PER_VALUE;
  }
}
