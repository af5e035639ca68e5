import { oneLine, textBeginning } from "../../core/text.ts";

/** How many lines are kept. */
const KEPT = 5;

/** How much of one. */
const MAX_LENGTH = 200;

/** Lines on a server's standard output that are no messages: counted, and the last of them kept for people. */
export class Noise {
  #count = 0;
  #lines: string[] = [];

  get count(): number {
    return this.#count;
  }

  /** The last lines, each in one line. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  add(line: string): void {
    this.#count += 1;
    const shown = oneLine(textBeginning(line, MAX_LENGTH));
    this.#lines = [...this.#lines, shown].slice(-KEPT);
  }
}
