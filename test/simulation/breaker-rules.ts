import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../src/core/call.ts";
import type { Clock } from "../../src/core/clock.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { LogFields } from "../../src/core/logger.ts";
import type { CircuitBreakerPolicy, Step, ToolPolicy } from "../../src/core/step.ts";
import type { Journal } from "./journal.ts";
import type { SimulatedTool } from "./scenario-parts.ts";

/** What is expected of one circuit. */
interface Expected {
  readonly policy: CircuitBreakerPolicy;
  state: "closed" | "open" | "half-open";
  /** Grows with each change of the state. */
  epoch: number;
  /** How often it has opened. */
  opened: number;
  faults: number;
  /** The same, and those of attempts that began before the last change too, which may count or not. */
  mostFaults: number;
  /** When the last fault was. */
  faultMs: number;
  reopensMs: number;
  probes: number;
}

type Verdict = "fault" | "answered" | "nothing";

/**
 * A step that stands right inside the circuit breaker, sees what it lets pass and what becomes of that, and holds it
 * against a model of its own.
 */
export class BreakerRules {
  readonly step: Step;
  /** Stands where the upstream does: what comes there goes out. */
  readonly dispatchStep: Step;
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #circuits = new Map<string, Expected>();
  /** How often its circuit had opened when an attempt was let pass, by the signal that ends the attempt. */
  readonly #admitted = new WeakMap<AbortSignal, number>();

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
    this.step = {
      name: "breaker-rules",
      scope: "attempt",
      compile: ({ name }, policy) => {
        const { circuitBreaker } = policy;
        if (circuitBreaker === undefined) return undefined;
        const expected = this.#of(name, policy, circuitBreaker);
        return (call, context, next) => this.#watch(expected, call, context, next);
      },
    };
    this.dispatchStep = {
      name: "dispatch-rules",
      scope: "attempt",
      compile: ({ name }, policy) => {
        const { circuitBreaker } = policy;
        if (circuitBreaker === undefined) return undefined;
        const expected = this.#of(name, policy, circuitBreaker);
        return (call, context, next) => {
          if (this.#admitted.get(context.signal) !== expected.opened) {
            journal.breach("nothing goes out that its circuit let pass before it opened", context.callId);
          }
          return next(call, context);
        };
      },
    };
  }

  /** A line of the gateway's log. */
  log(message: string, fields: LogFields, tool: SimulatedTool): void {
    const { circuitBreaker } = tool.policy;
    if (circuitBreaker === undefined) return;
    const expected = this.#of(tool.definition.name, tool.policy, circuitBreaker);
    if (message === "circuit-open") {
      if (expected.state === "closed" && Number(fields["faults"]) < circuitBreaker.failureThreshold) {
        this.#journal.breach("failure_threshold", `open after ${String(fields["faults"])}`);
      }
      const needed = expected.state === "closed" ? circuitBreaker.failureThreshold : 1;
      if (expected.mostFaults < needed) {
        this.#journal.breach("a circuit opens for the upstream's faults", `${expected.mostFaults} of ${needed}`);
      }
      change(expected, "open");
      expected.opened += 1;
      expected.reopensMs = this.#clock.monotonicMs() + circuitBreaker.resetTimeoutMs;
    } else change(expected, "closed");
  }

  #of(tool: string, { upstream }: ToolPolicy, policy: CircuitBreakerPolicy): Expected {
    const { scope, failureThreshold, resetTimeoutMs } = policy;
    const key = `${scope === "tool" ? tool : upstream} ${scope} ${upstream} ${failureThreshold} ${resetTimeoutMs}`;
    const made: Expected = {
      policy,
      state: "closed",
      epoch: 0,
      opened: 0,
      faults: 0,
      mostFaults: 0,
      faultMs: 0,
      reopensMs: 0,
      probes: 0,
    };
    const expected = this.#circuits.get(key) ?? made;
    this.#circuits.set(key, expected);
    return expected;
  }

  async *#watch(
    expected: Expected,
    call: ToolCall,
    context: CallContext,
    next: Invoke,
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    const epoch = this.#admit(expected, context.callId);
    this.#admitted.set(context.signal, expected.opened);
    let verdict: Verdict = "nothing";
    try {
      for await (const event of next(call, context)) {
        if (event.type === "upstream-delta") {
          verdict = "answered";
          if (expected.state === "half-open" && expected.epoch === epoch) change(expected, "closed");
        } else if (event.type === "upstream-result") {
          verdict = event.result.failure?.upstreamFault === true ? "fault" : "answered";
        }
        yield event;
      }
    } catch (thrown) {
      verdict = isFault(GatewayError.from(thrown)) ? "fault" : "nothing";
      throw thrown;
    } finally {
      this.#take(expected, epoch, verdict);
    }
  }

  #admit(expected: Expected, callId: string): number {
    const nowMs = this.#clock.monotonicMs();
    const breach = (promise: string, facts: string): void => this.#journal.breach(promise, `${callId} ${facts}`);
    const { failureThreshold } = expected.policy;
    if (expected.state === "open") {
      if (nowMs < expected.reopensMs) breach("an open circuit lets nothing through", `until ${expected.reopensMs}`);
      change(expected, "half-open");
    } else if (expected.state === "closed" && expected.faults >= failureThreshold && expected.faultMs < nowMs) {
      breach("a circuit opens after so many faults", `${expected.faults} faults in a row`);
    }
    if (expected.state === "half-open") {
      expected.probes += 1;
      if (expected.probes > 1) breach("one probe at a time", `${expected.probes} probes`);
    }
    return expected.epoch;
  }

  #take(expected: Expected, epoch: number, verdict: Verdict): void {
    if (verdict === "answered") expected.faults = 0;
    if (verdict === "fault") expected.mostFaults += 1;
    else if (verdict === "answered" && expected.epoch === epoch) expected.mostFaults = 0;
    // What began before the last change tells nothing of the time after it.
    if (expected.epoch !== epoch) return;
    if (expected.state === "half-open") {
      expected.probes -= 1;
      if (verdict === "answered") change(expected, "closed");
    } else if (verdict === "fault") {
      expected.faults += 1;
      expected.faultMs = this.#clock.monotonicMs();
    }
  }
}

function change(expected: Expected, state: Expected["state"]): void {
  Object.assign(expected, { state, epoch: expected.epoch + 1, faults: 0, probes: 0 });
}

/** Whether an error speaks against the upstream. */
function isFault({ reason, effect, retryable }: GatewayError): boolean {
  if (reason === "UPSTREAM_TIMEOUT" || reason === "UPSTREAM_ANSWER_LOST") return true;
  return reason === "UPSTREAM_UNREACHABLE" && (effect !== "none" || retryable);
}
