import type { Clock } from "../core/clock.ts";
import type { CircuitBreakerPolicy, ToolPolicy } from "../core/step.ts";
import { Circuit, type CircuitState, type Permit } from "./circuit.ts";
import type { Verdict } from "./upstream-fault.ts";

/** Most circuits that are kept. Only upstreams with faults have one, so a full table has lost its oldest fault. */
const MAX_CIRCUITS = 10_000;

/** Whose faults a circuit counts. */
export interface CircuitSubject {
  /** Differs where upstream, settings or, in the scope of tools, the tool does: another subject starts afresh. */
  readonly key: string;
  /** The tool whose attempt it is. */
  readonly tool: string;
  readonly upstream: string;
  readonly policy: CircuitBreakerPolicy;
}

/** An attempt before its subject's circuit. */
export interface Passage {
  /** Absent where the subject has none: nothing was wrong. */
  readonly circuit?: Circuit;
  /** Absent where there is no circuit to pass, and where it lets nobody pass. */
  readonly permit?: Permit;
}

interface Kept {
  readonly circuit: Circuit;
  /** Tools that have used it. */
  readonly tools: Set<string>;
}

const FREE: Passage = {};

/** The subject of a tool's attempts; `undefined` for a tool without a circuit breaker. */
export function subjectOf(tool: string, { circuitBreaker: policy, upstream }: ToolPolicy): CircuitSubject | undefined {
  if (policy === undefined) return undefined;
  const whose = policy.scope === "tool" ? `tool ${tool}` : "all";
  return { key: `${whose} ${upstream} ${policy.failureThreshold} ${policy.resetTimeoutMs}`, tool, upstream, policy };
}

/**
 * The circuits of all tools. One is made at a subject's first fault and dropped once its upstream has answered again,
 * so what works costs nothing but a look into a map.
 */
export class Circuits implements Disposable {
  readonly #changed: (subject: CircuitSubject) => void;
  readonly #kept = new Map<string, Kept>();
  #disposed = false;

  /** `changed` is called after each change of a circuit's state, with the subject it was made for. */
  constructor(changed: (subject: CircuitSubject) => void) {
    this.#changed = changed;
  }

  /** Circuits that are kept. */
  get size(): number {
    return this.#kept.size;
  }

  /** How many are in that state. */
  count(state: CircuitState): number {
    return [...this.#kept.values()].filter(({ circuit }) => circuit.state === state).length;
  }

  of(subject: CircuitSubject): Circuit | undefined {
    return this.#kept.get(subject.key)?.circuit;
  }

  /** Asks for an attempt to pass: it must not be made where there is a circuit and no permit. */
  enter(subject: CircuitSubject): Passage {
    const kept = this.#kept.get(subject.key);
    if (kept === undefined) return FREE;
    kept.tools.add(subject.tool);
    const permit = kept.circuit.admit();
    return permit === undefined ? { circuit: kept.circuit } : { circuit: kept.circuit, permit };
  }

  /** Takes an attempt's verdict. Returns the state this brought its circuit into, if it changed. */
  leave(subject: CircuitSubject, passage: Passage, verdict: Verdict, clock: Clock): CircuitState | undefined {
    // The tool has gone, or has other settings by now.
    if (this.#disposed || passage.circuit?.disposed === true) return undefined;
    const kept = this.#kept.get(subject.key) ?? (typeof verdict === "object" ? this.#make(subject, clock) : undefined);
    if (kept === undefined) return undefined;
    const before = kept.circuit.state;
    if (passage.permit !== undefined && passage.circuit === kept.circuit) passage.permit.end(verdict);
    else kept.circuit.count(verdict);
    const { state, faults } = kept.circuit;
    if (state === "closed" && faults === 0) this.#kept.delete(subject.key);
    return state === before ? undefined : state;
  }

  /** From now on the tool's attempts are of this subject, or there are none: circuits it alone has used are freed. */
  settled(tool: string, subject: CircuitSubject | undefined): void {
    for (const [key, { circuit, tools }] of this.#kept) {
      if (key === subject?.key || !tools.delete(tool) || tools.size > 0) continue;
      this.#kept.delete(key);
      circuit[Symbol.dispose]();
    }
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const { circuit } of this.#kept.values()) circuit[Symbol.dispose]();
    this.#kept.clear();
  }

  #make(subject: CircuitSubject, clock: Clock): Kept {
    for (const [key, { circuit }] of this.#kept) {
      if (this.#kept.size < MAX_CIRCUITS) break;
      this.#kept.delete(key);
      circuit[Symbol.dispose]();
    }
    const { failureThreshold, resetTimeoutMs } = subject.policy;
    const circuit = new Circuit({ failureThreshold, resetTimeoutMs, clock, changed: () => this.#changed(subject) });
    const kept: Kept = { circuit, tools: new Set([subject.tool]) };
    this.#kept.set(subject.key, kept);
    return kept;
  }
}
