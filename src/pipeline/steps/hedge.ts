import type { CallContext, Invoke, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { type LinkedSignal, linkSignals } from "../../core/signal.ts";
import type { HedgePolicy, Step, ToolPolicy } from "../../core/step.ts";
import { afterAttempts } from "../attempted-error.ts";
import { Latencies } from "../latencies.ts";
import type { RetryBudgets } from "../retry-budget.ts";

/**
 * Begins an attempt once more where it has not answered after a while, and takes the answer that comes first; the others
 * are cancelled. Only for tools that read and whose answers come as a whole: nothing is done twice and nothing is mixed.
 * What it adds to the upstream's load counts in the upstream's retry budget.
 */
export function createHedgeStep(budgets: RetryBudgets): Step {
  return {
    name: "hedge",
    scope: "attempt",
    compile({ name, delivery }, policy, { clock }) {
      const { hedge, effectClass } = policy;
      if (hedge === undefined || effectClass !== "read" || delivery !== "conclusive") return undefined;
      const parts = { tool: name, policy, hedge, clock, budgets, latencies: new Latencies() };
      return (call, context, next) =>
        call.validateOnly ? next(call, context) : new Race(parts, { call, context, next }).events();
    },
  };
}

interface HedgeParts {
  readonly tool: string;
  readonly policy: ToolPolicy;
  readonly hedge: HedgePolicy;
  readonly clock: Clock;
  readonly budgets: RetryBudgets;
  readonly latencies: Latencies;
}

interface Attempted {
  readonly call: ToolCall;
  readonly context: CallContext;
  readonly next: Invoke;
}

/** One of the attempts that race. */
interface Runner extends LinkedSignal {
  readonly events: AsyncIterator<UpstreamEvent>;
  readonly startedMs: number;
  /** What it does next; absent: it has not been asked. */
  pending?: Promise<News> | undefined;
  over: boolean;
}

/** What happens next in a race: the time for another attempt has come, or an attempt has something to say. */
type News =
  | { readonly type: "due" }
  | { readonly type: "event"; readonly runner: Runner; readonly event: UpstreamEvent }
  | { readonly type: "ended"; readonly runner: Runner; readonly error: GatewayError };

/** Ends a race that no attempt has won: the answer or the error of the last one. */
type Outcome = UpstreamResult | GatewayError;

class Race {
  readonly #parts: HedgeParts;
  readonly #attempt: Attempted;
  readonly #runners: Runner[] = [];
  #timer: { readonly due: Promise<News>; readonly clock: Disposable } | undefined;

  constructor(parts: HedgeParts, attempt: Attempted) {
    this.#parts = parts;
    this.#attempt = attempt;
  }

  async *events(): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { budgets, policy, clock } = this.#parts;
    // Retries, where there are any, have counted the call.
    if (policy.retry.maxRetries === 0) budgets.call(policy.upstream, clock);
    try {
      this.#begin();
      while (true) {
        const news = await this.#news();
        if (news.type === "due") {
          this.#hedge();
          continue;
        }
        const { runner } = news;
        if (news.type === "event" && news.event.type !== "upstream-result") {
          if (news.event.type === "upstream-delta") this.#leaveTo(runner);
          yield news.event;
          continue;
        }
        const outcome = news.type === "ended" ? news.error : resultOf(news.event);
        if (!this.#decides(runner, outcome)) continue;
        yield { type: "upstream-result", result: this.#conclude(outcome) };
        return;
      }
    } finally {
      this.#end();
    }
  }

  #begin(): void {
    const { call, context, next } = this.#attempt;
    const link = linkSignals(context.signal);
    const events = next(call, { ...context, signal: link.signal })[Symbol.asyncIterator]();
    this.#runners.push({ ...link, events, startedMs: this.#parts.clock.monotonicMs(), over: false });
    this.#arm();
  }

  /** Waits for the time of the next attempt, if there is to be one. */
  #arm(): void {
    const { hedge, latencies, clock } = this.#parts;
    this.#disarm();
    if (this.#runners.length > hedge.max) return;
    const afterMs = "ms" in hedge.after ? hedge.after.ms : latencies.percentile(hedge.after.percentile);
    if (afterMs === undefined) return;
    const due = Promise.withResolvers<News>();
    this.#timer = { due: due.promise, clock: clock.after(afterMs, () => due.resolve({ type: "due" })) };
  }

  #disarm(): void {
    this.#timer?.clock[Symbol.dispose]();
    this.#timer = undefined;
  }

  #hedge(): void {
    const { budgets, policy, clock, tool } = this.#parts;
    this.#disarm();
    if (!budgets.take(policy.upstream, policy.retry.budget, clock)) return;
    const { callId, logger } = this.#attempt.context;
    logger.debug("tool-call-hedge", { callId, tool, running: this.#runners.length });
    this.#begin();
  }

  #news(): Promise<News> {
    const running = this.#runners.filter((runner) => !runner.over).map((runner) => (runner.pending ??= ask(runner)));
    return Promise.race(this.#timer === undefined ? running : [...running, this.#timer.due]).then((news) => {
      if (news.type !== "due") news.runner.pending = undefined;
      return news;
    });
  }

  /** Whether an outcome ends the race: a fault does not while another attempt may still go well. */
  #decides(runner: Runner, outcome: Outcome): boolean {
    const isFault = outcome instanceof GatewayError || outcome.failure?.transient === true;
    if (isFault) {
      if (outcome instanceof GatewayError) runner.over = true;
      else this.#stop(runner);
      return this.#runners.every(({ over }) => over);
    }
    // The first one is what a call takes without hedges; cut short, it took at least as long.
    const [first] = this.#runners;
    if (first !== undefined && !first.over)
      this.#parts.latencies.add(this.#parts.clock.monotonicMs() - first.startedMs);
    return true;
  }

  /** Output has begun, so this attempt is the answer, whatever comes. */
  #leaveTo(winner: Runner): void {
    this.#disarm();
    for (const runner of this.#runners) if (runner !== winner) this.#stop(runner);
  }

  /** The outcome with the number of attempts. @throws GatewayError. */
  #conclude(outcome: Outcome): UpstreamResult {
    const count = this.#runners.length;
    if (!(outcome instanceof GatewayError)) return count === 1 ? outcome : { ...outcome, attempts: count };
    throw count === 1 ? outcome : afterAttempts(outcome, { count, effect: outcome.effect, words: "" });
  }

  #stop(runner: Runner): void {
    if (runner.over) return;
    runner.over = true;
    runner.abort(
      new GatewayError(
        "CALL_CANCELLED",
        `tool "${this.#parts.tool}": this attempt is given up, another one has answered`,
      ),
    );
    runner.events.return?.().catch(() => undefined);
    runner[Symbol.dispose]();
  }

  #end(): void {
    this.#disarm();
    for (const runner of this.#runners) {
      this.#stop(runner);
      runner[Symbol.dispose]();
    }
  }
}

async function ask(runner: Runner): Promise<News> {
  try {
    const step = await runner.events.next();
    if (step.done !== true) return { type: "event", runner, event: step.value };
    return { type: "ended", runner, error: GatewayError.from(new Error("an attempt ended without a result")) };
  } catch (error) {
    return { type: "ended", runner, error: GatewayError.from(error) };
  }
}

function resultOf(event: UpstreamEvent): Outcome {
  if (event.type === "upstream-result") return event.result;
  return GatewayError.from(new Error(`"${event.type}" is no result`));
}
