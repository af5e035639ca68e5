import { createHash } from "node:crypto";
import type { Clock } from "../../src/core/clock.ts";

/** What happened in a schedule, in order, and which promises were broken. */
export class Journal {
  readonly lines: string[] = [];
  readonly broken: string[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(text: string): void {
    this.lines.push(`${this.#clock.monotonicMs()} ${text}`);
  }

  /** A promise does not hold. */
  breach(promise: string, facts: string): void {
    const line = `BROKEN ${promise}: ${facts}`;
    this.note(line);
    this.broken.push(`at ${this.#clock.monotonicMs()} ms, ${promise}: ${facts}`);
  }

  /** Equal for equal schedules only. */
  digest(): string {
    return createHash("sha256").update(this.lines.join("\n")).digest("hex").slice(0, 16);
  }
}
