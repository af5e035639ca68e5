import type { Clock } from "../../core/clock.ts";
import { type Slot, type SlotRefusal, Slots, type SlotWait } from "../../core/slots.ts";
import type { Availability } from "../../core/tool.ts";
import { AdaptiveLimit, type LatencySample } from "./adaptive-limit.ts";

/** Ceiling of an adaptive limit that has no other. */
const MOST_ADAPTIVE = 1_000;
/** Weight of one call in the mean of how long calls take. */
const MEAN_WEIGHT = 1 / 8;
/** How long calls are taken to last before one has ended. */
const FIRST_GUESS_MS = 1_000;
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 60_000;

/** What is limited, and how. */
export interface CallLimitSettings {
  /** Key of the limit, such as `concurrency_limit`. */
  readonly key: string;
  /** Absent only where the limit is adaptive. */
  readonly most: number | undefined;
  readonly adaptive: boolean;
}

/** A limit of calls at a time, of a tool or a group, whatever version of the tool asks. */
export class CallLimit {
  /** What it limits, such as `tool "orders"`. */
  readonly subject: string;
  readonly #clock: Clock;
  readonly #slots: Slots;
  #key = "";
  #adaptive: AdaptiveLimit | undefined;
  #meanMs: number | undefined;
  /** When a slot was given last. */
  #movedMs = 0;

  constructor(subject: string, clock: Clock) {
    this.subject = subject;
    this.#clock = clock;
    this.#slots = new Slots({ limit: 1, maxWaiting: 0 }, clock);
  }

  /** These settings count from now on, for those that wait already too. */
  configure({ key, most, adaptive }: CallLimitSettings): void {
    this.#key = key;
    const ceiling = most ?? MOST_ADAPTIVE;
    if (!adaptive) this.#adaptive = undefined;
    else if (this.#adaptive === undefined) this.#adaptive = new AdaptiveLimit(ceiling);
    else this.#adaptive.setMost(ceiling);
    this.#setLimit(this.#adaptive?.limit ?? ceiling);
  }

  get key(): string {
    return this.#key;
  }

  /** Calls that run now. */
  get running(): number {
    return this.#slots.held;
  }

  /** Calls that wait now. */
  get waiting(): number {
    return this.#slots.waiting;
  }

  /** Most calls at a time now. */
  get limit(): number {
    return this.#slots.limits.limit;
  }

  /** Whether nothing runs and nothing waits, so that it can be made anew without anybody noticing much. */
  get isAtRest(): boolean {
    return this.running === 0 && this.waiting === 0;
  }

  /** Whether {@link take} gives a slot at once. */
  get free(): boolean {
    return this.#slots.free;
  }

  /** As {@link Slots.take}. */
  take(wait: SlotWait): Slot | Promise<Slot> {
    const taken = this.#slots.take(wait);
    return taken instanceof Promise ? taken.then((slot) => this.#timed(slot)) : this.#timed(taken);
  }

  /**
   * When one that was refused had better call again, in milliseconds: about when one at its place would have its turn,
   * by how long calls took; not before as long as nothing has moved. 100 ms to 60 s.
   */
  retryAfterMs({ position }: SlotRefusal): number {
    const turnMs = (position * (this.#meanMs ?? FIRST_GUESS_MS)) / this.limit;
    const stillMs = this.#clock.monotonicMs() - this.#movedMs;
    return Math.round(Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, turnMs, stillMs)));
  }

  /** That calls wait; `undefined`: none does. */
  availability(): Availability | undefined {
    if (this.waiting === 0) return undefined;
    return {
      state: "degraded",
      reason: `${this.subject} is at its limit (\`${this.#key}\`): ${this.load()}`,
      mend: `Look why its calls take long, or raise \`${this.#key}\`.`,
    };
  }

  /** `2 calls run and 1 waits`, for people. */
  load(): string {
    const { running, waiting } = this;
    return `${running} ${running === 1 ? "call runs" : "calls run"} and ${waiting} ${waiting === 1 ? "waits" : "wait"}`;
  }

  /** A call ended that held a slot: an adaptive limit follows. */
  observe(sample: LatencySample): void {
    if (this.#adaptive === undefined) return;
    this.#adaptive.add(sample, this.#clock.monotonicMs());
    this.#setLimit(this.#adaptive.limit);
  }

  #setLimit(limit: number): void {
    if (limit !== this.limit) this.#slots.setLimits({ limit, maxWaiting: 0 });
  }

  #timed(slot: Slot): Slot {
    const sinceMs = this.#clock.monotonicMs();
    this.#movedMs = sinceMs;
    let held = true;
    return {
      waitedMs: slot.waitedMs,
      [Symbol.dispose]: () => {
        if (!held) return;
        held = false;
        const tookMs = this.#clock.monotonicMs() - sinceMs;
        this.#meanMs = this.#meanMs === undefined ? tookMs : this.#meanMs + (tookMs - this.#meanMs) * MEAN_WEIGHT;
        slot[Symbol.dispose]();
      },
    };
  }
}
