/** Time that work may take on arguments of any size, in milliseconds. */
const BASE_MS = 15;

/** Further time for each value in the arguments: four times what a plain schema takes. */
const MS_PER_VALUE = 0.002;

/** Most steps for each value that count as work in proportion to the arguments. */
const STEPS_PER_VALUE = 64;

/** Steps between two looks at the clock. */
const STEPS_BETWEEN_LOOKS = 16;

/** Thrown through a validator that has worked for too long. Never leaves this folder. */
export class WorkLimitReached extends Error {}

/**
 * Stops work that takes too long: after 15 ms where it multiplies (many steps for each value), else after 15 ms and
 * 2 µs for each value, since many values take their time however simple the schema. It looks at the clock first and,
 * where that says too long, at the processor time of this thread, since one that merely waited has done nothing wrong.
 */
export class WorkMeter {
  readonly #values: number;
  #steps = 0;
  #startMs: number | undefined;
  #startCpu: NodeJS.CpuUsage | undefined;

  /** @param values how many values the arguments have. */
  constructor(values: number) {
    this.#values = values;
  }

  /** One value is held against one schema or pattern. @throws WorkLimitReached. */
  step(): void {
    if (++this.#steps % STEPS_BETWEEN_LOOKS === 0) this.look();
  }

  /** Something that may take long comes. @throws WorkLimitReached when the time since the first look is spent. */
  look(): void {
    if (this.#startMs === undefined) {
      this.#startMs = performance.now();
      this.#startCpu = process.threadCpuUsage();
      return;
    }
    const limitMs = this.#limitMs();
    if (performance.now() - this.#startMs <= limitMs) return;
    const { user, system } = process.threadCpuUsage(this.#startCpu);
    if ((user + system) / 1_000 > limitMs) throw new WorkLimitReached();
  }

  #limitMs(): number {
    const multiplies = this.#steps > this.#values * STEPS_PER_VALUE;
    return multiplies ? BASE_MS : BASE_MS + this.#values * MS_PER_VALUE;
  }
}
