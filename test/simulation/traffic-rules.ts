import type { Clock } from "../../src/core/clock.ts";
import type { LogFields } from "../../src/core/logger.ts";
import type { RateLimit } from "../../src/core/step.ts";
import type { Journal } from "./journal.ts";
import type { SimulatedTool } from "./scenario-parts.ts";

/** So many repetitions of calls are allowed in any case, and over this time. */
const BUDGET_FLOOR = 10;
const BUDGET_MS = 10_000;

interface Passed {
  readonly tool: SimulatedTool;
  readonly atMs: number;
  refused: boolean;
}

/** Counts calls and repetitions by the gateway's log, and holds them against rate limits and retry budgets. */
export class TrafficRules {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #calls = new Map<string, Passed>();
  readonly #repetitions: { readonly upstream: string; readonly atMs: number }[] = [];

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  /** A line of the gateway's log. */
  log(message: string, fields: LogFields, tool: SimulatedTool): void {
    const atMs = this.#clock.monotonicMs();
    const callId = String(fields["callId"]);
    if (message === "tool-call-start") this.#calls.set(callId, { tool, atMs, refused: false });
    if (message === "tool-call-end" && fields["reason"] === "RATE_LIMITED") {
      const call = this.#calls.get(callId);
      if (call !== undefined) call.refused = true;
    }
    if (message === "tool-call-retry" || message === "tool-call-hedge") this.#repeat(tool, atMs);
  }

  /** For the end of a schedule. */
  check(): void {
    const passed = [...this.#calls.values()].filter(({ refused }) => !refused);
    const tools = new Set(passed.map(({ tool }) => tool));
    const groups = new Map([...tools].map(({ policy: { group } }) => [group?.name, group]));
    for (const tool of tools) {
      const own = passed.filter((call) => call.tool === tool);
      this.#checkRate(own, tool.policy.rateLimit, tool.definition.name);
    }
    for (const group of groups.values()) {
      const own = passed.filter(({ tool }) => group !== undefined && tool.policy.group?.name === group.name);
      this.#checkRate(own, group?.rateLimit, group?.name ?? "");
    }
  }

  #repeat({ policy: { upstream, retry } }: SimulatedTool, atMs: number): void {
    this.#repetitions.push({ upstream, atMs });
    const isRecent = (ms: number): boolean => ms > atMs - BUDGET_MS + 1_000;
    const repetitions = this.#repetitions.filter((each) => each.upstream === upstream && isRecent(each.atMs)).length;
    const calls = [...this.#calls.values()].filter(
      (call) => call.tool.policy.upstream === upstream && call.atMs > atMs - BUDGET_MS,
    ).length;
    // The one that is taken last may go beyond the share by a fraction.
    if (repetitions > Math.max(BUDGET_FLOOR, Math.ceil(calls * retry.budget))) {
      this.#journal.breach("retry.budget", `${repetitions} of ${calls} calls of ${upstream}`);
    }
  }

  #checkRate(calls: readonly Passed[], rate: RateLimit | undefined, name: string): void {
    if (rate === undefined) return;
    const times = calls.map(({ atMs }) => atMs);
    for (const [i, from] of times.entries()) {
      for (const [more, to] of times.slice(i).entries()) {
        const allowed = rate.burst + ((to - from) * rate.requests) / rate.perMs;
        if (more + 1 <= allowed + 1e-6) continue;
        this.#journal.breach("rate_limit", `${more + 1} calls of ${name} in ${to - from} ms`);
        return;
      }
    }
  }
}
