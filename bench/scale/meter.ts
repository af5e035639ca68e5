import { monitorEventLoopDelay } from "node:perf_hooks";

/** What a process used since it was last asked. */
export interface Usage {
  readonly wallMs: number;
  /** All threads. */
  readonly cpuMs: number;
  /** Of the event loop's thread alone: without the garbage collector's helpers and the compiler. */
  readonly loopMs: number;
  /** Longest time a timer of the event loop came late; other work on the machine counts too. */
  readonly longestDelayMs: number;
  /** Most CPU time the event loop's thread spent in one turn; other work on the machine does not count. */
  readonly longestTurnMs: number;
  /** Resident memory after a garbage collection (where the process was started with `--expose-gc`). */
  readonly rssBytes: number;
  /** What of it is alive in the JavaScript heap. */
  readonly heapBytes: number;
}

const TICK_MS = 1;

/** Measures its own process, from call to call. */
export class Meter {
  readonly #delays = monitorEventLoopDelay({ resolution: TICK_MS });
  #wallMs = performance.now();
  #cpu = process.cpuUsage();
  #loopStart = process.threadCpuUsage();
  #turnStart = this.#loopStart;
  #longestTurnMs = 0;
  readonly #ticks: NodeJS.Timeout;

  constructor() {
    this.#delays.enable();
    this.#ticks = setInterval(() => this.#turn(), TICK_MS);
  }

  /** Measures delays and turns no more, which takes some time itself. */
  quiet(): void {
    this.#delays.disable();
    clearInterval(this.#ticks);
  }

  read(): Usage {
    this.#turn();
    const { user, system } = process.cpuUsage(this.#cpu);
    const loop = process.threadCpuUsage(this.#loopStart);
    const usage = {
      wallMs: performance.now() - this.#wallMs,
      cpuMs: (user + system) / 1000,
      loopMs: (loop.user + loop.system) / 1000,
      // The histogram counts the tick's own time in; without a tick it has no maximum.
      longestDelayMs: this.#delays.count === 0 ? 0 : Math.max(0, this.#delays.max / 1e6 - TICK_MS),
      longestTurnMs: this.#longestTurnMs,
    };
    global.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    this.#delays.reset();
    this.#cpu = process.cpuUsage();
    this.#loopStart = process.threadCpuUsage();
    this.#turnStart = this.#loopStart;
    this.#longestTurnMs = 0;
    this.#wallMs = performance.now();
    return { ...usage, rssBytes: rss, heapBytes: heapUsed };
  }

  #turn(): void {
    const now = process.threadCpuUsage();
    const ms = (now.user + now.system - this.#turnStart.user - this.#turnStart.system) / 1000;
    this.#longestTurnMs = Math.max(this.#longestTurnMs, ms);
    this.#turnStart = now;
  }
}
