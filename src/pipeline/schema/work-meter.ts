/** Time that work may take on arguments of any size, in milliseconds. */
const BASE_MS = 20;

/** Further time for each value in the arguments: twice what a plain schema takes in a busy process just started. */
const MS_PER_VALUE = 0.005;

/** Most steps for each value visited that count as work in proportion to the arguments. */
const STEPS_PER_VALUE = 64;

/** Thrown through a validator that has worked for too long. Never leaves this folder. */
export class WorkLimitReached extends Error {}

/**
 * Stops work that takes too long: after 20 ms where it multiplies (many steps for each value), else after 20 ms and
 * 5 µs for each value, since many values take their time however simple the schema. It looks at the clock first and,
 * where that says too long, at the processor time used, since a process that merely waited has done nothing wrong.
 */
export class WorkMeter {
  #values = 0;
  #visited = 0;
  #steps = 0;
  #startMs: number | undefined;
  #startCpu: NodeJS.CpuUsage | undefined;

  /** Begins anew, for arguments of so many values. */
  reset(values: number): void {
    this.#values = values;
    this.#visited = 0;
    this.#steps = 0;
    this.#startMs = undefined;
  }

  /** The next of many values. @throws WorkLimitReached. */
  visit(): void {
    if ((++this.#visited & 3) === 0) this.look();
  }

  /** One more schema or pattern for the same value. @throws WorkLimitReached. */
  step(): void {
    if ((++this.#steps & 3) === 0) this.look();
  }

  /** Something that may take long comes. @throws WorkLimitReached when the time since the first look is spent. */
  look(): void {
    if (this.#startMs === undefined) {
      this.#startMs = performance.now();
      this.#startCpu = process.cpuUsage();
      return;
    }
    const limitMs = this.#limitMs();
    if (performance.now() - this.#startMs <= limitMs) return;
    const { user, system } = process.cpuUsage(this.#startCpu);
    if ((user + system) / 1_000 > limitMs) throw new WorkLimitReached();
  }

  #limitMs(): number {
    const multiplies = this.#steps > this.#visited * STEPS_PER_VALUE;
    return multiplies ? BASE_MS : BASE_MS + this.#values * MS_PER_VALUE;
  }
}
