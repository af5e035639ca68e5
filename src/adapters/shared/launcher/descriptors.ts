import { readdirSync, readFileSync } from "node:fs";

/** Descriptors of a program that runs: its three standard streams. */
const EACH = 3;

/** What a spawn needs besides, for a moment. */
const SPARE = 10;

/**
 * Knows how many programs can run before descriptors run out. A spawn that fails for want of one leaks those it has
 * opened already (Node.js gives them up without closing them), so it is better not tried. Only Linux tells.
 */
export class Descriptors {
  readonly #own: number;

  constructor() {
    this.#own = process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
  }

  /** Whether one more than these can be started. The limit is read anew, since it can be changed from outside. */
  sufficeFor(programs: number): boolean {
    return this.#own + SPARE + EACH * (programs + 1) <= limit();
  }
}

function limit(): number {
  if (process.platform !== "linux") return Number.POSITIVE_INFINITY;
  const [, soft = "unlimited"] = /^Max open files +(\S+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
