import type { Clock } from "../core/clock.ts";

/** Runs a task at the soonest of the times asked for, one run at a time. One timer, however often it is asked. */
export class ScheduledTask implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #task: () => Promise<void>;
  #dueMs = Number.POSITIVE_INFINITY;
  #timer: Disposable | undefined;
  #running: Promise<void> | undefined;
  #disposed = false;

  /** @param task must not reject. */
  constructor(clock: Clock, task: () => Promise<void>) {
    this.#clock = clock;
    this.#task = task;
  }

  /** Asks for a run within this time. While one goes on, the next begins after it. */
  within(delayMs: number): void {
    const dueMs = this.#clock.monotonicMs() + Math.max(0, delayMs);
    if (this.#disposed || dueMs >= this.#dueMs) return;
    this.#dueMs = dueMs;
    if (this.#running === undefined) this.#arm();
  }

  /** Forgets what was asked for and waits for a run that goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    this.#timer?.[Symbol.dispose]();
    await this.#running;
  }

  #arm(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#clock.after(Math.max(0, this.#dueMs - this.#clock.monotonicMs()), () => this.#run());
  }

  #run(): void {
    this.#timer = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
    this.#running = this.#task().finally(() => {
      this.#running = undefined;
      if (!this.#disposed && this.#dueMs !== Number.POSITIVE_INFINITY) this.#arm();
    });
  }
}
