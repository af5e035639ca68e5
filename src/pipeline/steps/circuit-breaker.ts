import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { type LinkedSignal, linkSignals } from "../../core/signal.ts";
import type { Affected, Step } from "../../core/step.ts";
import type { Availability } from "../../core/tool.ts";
import { type WaitsBeforeDispatch, waitsBeforeDispatch } from "../before-dispatch.ts";
import type { Circuit } from "../circuit.ts";
import { type CircuitSubject, Circuits, subjectOf } from "../circuits.ts";
import { type Verdict, verdictOfError, verdictOfResult } from "../upstream-fault.ts";

/** When to call again while another attempt tries the upstream. */
const PROBE_WAIT_MS = 1_000;

/**
 * Keeps attempts from an upstream that has failed so many times in a row: they end at once with CIRCUIT_OPEN, which
 * says why and when the next one is made; so do those that have not gone out yet when it comes to that, whatever they
 * wait for. `changed` is told whenever tools have another availability by it.
 */
export function createCircuitBreakerStep(changed: (affected: Affected) => void): Step {
  const circuits = new Circuits(({ policy, tool, upstream }) =>
    changed(policy.scope === "tool" ? { tool } : { upstream }),
  );
  const lines = new Lines();
  return {
    name: "circuit-breaker",
    scope: "attempt",
    compile(tool, policy, { clock }) {
      const subject = subjectOf(tool.name, policy);
      if (subject === undefined) return undefined;
      const parts = { circuits, lines, waits: waitsBeforeDispatch(policy), subject, clock };
      return (call, context, next) =>
        call.validateOnly ? next(call, context) : guarded({ ...parts, call, context, next });
    },
    availability(tool, policy) {
      const subject = circuits.size === 0 ? undefined : subjectOf(tool, policy);
      const circuit = subject === undefined ? undefined : circuits.of(subject);
      return circuit === undefined ? undefined : availabilityOf(circuit);
    },
    gauges: () => ({
      "toolgate.circuits.open": circuits.count("open"),
      "toolgate.circuits.half_open": circuits.count("half-open"),
    }),
    settled(tool, policy) {
      circuits.settled(tool, policy === undefined ? undefined : subjectOf(tool, policy));
    },
    [Symbol.dispose]: () => circuits[Symbol.dispose](),
  };
}

/** An attempt that passed a circuit and has not gone out yet. */
interface Place extends LinkedSignal {
  /** Why it must not go out any more. */
  turnedAway: GatewayError | undefined;
}

/** The attempts that have not gone out yet, by their circuit. */
class Lines {
  readonly #places = new Map<string, Map<Place, CircuitSubject>>();

  enter(subject: CircuitSubject, place: Place): void {
    const places = this.#places.get(subject.key) ?? new Map<Place, CircuitSubject>();
    this.#places.set(subject.key, places.set(place, subject));
  }

  leave({ key }: CircuitSubject, place: Place): void {
    const places = this.#places.get(key);
    if (places?.delete(place) === true && places.size === 0) this.#places.delete(key);
  }

  /** The circuit has opened: nobody who passed it before goes out. */
  turnAway({ key }: CircuitSubject, circuit: Circuit): void {
    for (const [place, subject] of this.#places.get(key) ?? []) {
      place.turnedAway ??= circuitOpen(subject, circuit);
      place.abort(place.turnedAway);
    }
  }
}

interface Guarded {
  readonly circuits: Circuits;
  readonly lines: Lines;
  readonly waits: WaitsBeforeDispatch;
  readonly subject: CircuitSubject;
  readonly clock: Clock;
  readonly call: ToolCall;
  readonly context: CallContext;
  readonly next: Invoke;
}

async function* guarded(parts: Guarded): AsyncGenerator<UpstreamEvent, void, undefined> {
  const { circuits, subject, clock } = parts;
  const passage = circuits.enter(subject);
  if (passage.circuit !== undefined && passage.permit === undefined) throw circuitOpen(subject, passage.circuit);
  let verdict: Verdict = "nothing";
  try {
    for await (const event of attempt(parts)) {
      if (event.type === "upstream-result") verdict = verdictOfResult(event.result);
      else if (event.type === "upstream-delta") {
        verdict = "answered";
        if (passage.permit?.alive() === true) record(parts, "closed");
      }
      yield event;
    }
  } catch (thrown) {
    const error = GatewayError.from(thrown);
    verdict = verdictOfError(error);
    throw error;
  } finally {
    const state = circuits.leave(subject, passage, verdict, clock);
    if (state !== undefined) record(parts, state);
  }
}

function attempt(parts: Guarded): AsyncIterable<UpstreamEvent> {
  const { waits, call, context, next } = parts;
  // What has nothing to wait for goes out in the very moment it has passed.
  const isToWait = waits.turn || (waits.record && context.key !== undefined);
  return isToWait ? untilDispatched(parts) : next(call, context);
}

/** The attempt's events, which end at once where the circuit opens before the attempt goes out. */
async function* untilDispatched(parts: Guarded): AsyncGenerator<UpstreamEvent, void, undefined> {
  const { lines, subject, call, context, next } = parts;
  using link = linkSignals(context.signal);
  const place: Place = { ...link, turnedAway: undefined };
  const beforeDispatch = (): void => {
    lines.leave(subject, place);
    if (place.turnedAway !== undefined) throw place.turnedAway;
  };
  lines.enter(subject, place);
  try {
    yield* next(call, { ...context, signal: link.signal, beforeDispatch });
  } catch (thrown) {
    throw place.turnedAway ?? thrown;
  } finally {
    lines.leave(subject, place);
  }
}

function record({ circuits, lines, subject, context }: Guarded, state: Circuit["state"]): void {
  const { tool, upstream, policy } = subject;
  const circuit = circuits.of(subject);
  const facts = { tool, upstream, scope: policy.scope, callId: context.callId };
  if (state === "closed") context.logger.info("circuit-close", facts);
  if (state !== "open" || circuit === undefined) return;
  lines.turnAway(subject, circuit);
  const { faults, lastFault, retryInMs } = circuit;
  context.logger.warn("circuit-open", { ...facts, faults, lastFault: lastFault.words, retryInMs });
}

function circuitOpen({ tool, policy }: CircuitSubject, circuit: Circuit): GatewayError {
  const whose = policy.scope === "tool" ? "its circuit" : "the circuit of its upstream";
  const probing = circuit.state === "half-open";
  const retryAfterMs = probing ? PROBE_WAIT_MS : Math.ceil(circuit.retryInMs);
  const until = probing
    ? "another call tries the upstream just now"
    : `the next call after ${Math.ceil(retryAfterMs / 1_000)} s tries it again`;
  const text = `tool "${tool}" was not called: ${whose} is open after ${whyOpen(circuit)}; ${until}`;
  const { faults, lastFault } = circuit;
  return new GatewayError("CIRCUIT_OPEN", text, {
    retryAfterMs,
    metadata: {
      tool,
      scope: policy.scope,
      faults: String(faults),
      last_fault: lastFault.words,
      reachable: String(lastFault.reachable),
      retry_after_ms: String(retryAfterMs),
    },
  });
}

function availabilityOf(circuit: Circuit): Availability | undefined {
  if (circuit.state === "closed") return undefined;
  const mend = "Look at the upstream; the circuit closes by itself once a call goes well.";
  const why = whyOpen(circuit);
  if (circuit.state === "half-open") {
    return { state: "degraded", reason: `circuit half open after ${why}; the next call tries the upstream`, mend };
  }
  // As a time of day, so that the reason stays the same while nothing changes.
  const next = new Date(Math.round(circuit.retryAtMs / 1_000) * 1_000).toISOString();
  return {
    state: "unavailable",
    reason: `circuit open after ${why}; tries again at ${next.replace(".000", "")}`,
    mend,
  };
}

/** `5 faults of the upstream in a row, the last: it answered HTTP 503 (it can be reached)`. */
function whyOpen({ faults, lastFault }: Circuit): string {
  const reached = lastFault.reachable ? "it can be reached" : "it cannot be reached";
  return `${faults} fault${faults === 1 ? "" : "s"} of the upstream in a row, the last: ${lastFault.words} (${reached})`;
}
