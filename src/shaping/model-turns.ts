import type { CallContext } from "../core/call.ts";
import type { Clock } from "../core/clock.ts";
import { ModelTurn } from "./model-turn.ts";

/** How long a turn without a call is remembered. */
const TURN_TTL_MS = 10 * 60_000;

/** Most turns remembered, of one principal and in all. */
const MAX_OF_PRINCIPAL = 5_000;
const MAX_TURNS = 20_000;

interface Entry {
  readonly turn: ModelTurn;
  readonly principal: string;
  readonly key: string;
  usedMs: number;
}

/**
 * The turns that calls belong to: each of one principal, and of one session where the call names one. A turn without a call
 * is forgotten after ten minutes, or as the one that was not used for longest where there are too many.
 */
export class ModelTurns {
  readonly #clock: Clock;
  /** By principal, then by what names the turn; what was used last stands last. */
  readonly #byPrincipal = new Map<string, Map<string, Entry>>();
  /** All of them; what was used last stands last. */
  readonly #all = new Set<Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many turns are remembered. */
  get size(): number {
    return this.#all.size;
  }

  /** The turn of a call; undefined where the call names none. */
  of({ principal, sessionId, turnId }: Pick<CallContext, "principal" | "sessionId" | "turnId">): ModelTurn | undefined {
    if (turnId === undefined) return undefined;
    this.#forgetOld();
    const key = JSON.stringify([sessionId ?? null, turnId]);
    const own = this.#byPrincipal.get(principal.id) ?? new Map<string, Entry>();
    this.#byPrincipal.set(principal.id, own);
    const known = own.get(key);
    const entry = known ?? { turn: new ModelTurn(this.#clock), principal: principal.id, key, usedMs: 0 };
    entry.usedMs = this.#clock.monotonicMs();
    own.delete(key);
    own.set(key, entry);
    this.#all.delete(entry);
    this.#all.add(entry);
    if (own.size > MAX_OF_PRINCIPAL) this.#forget(own.values().next().value);
    if (this.#all.size > MAX_TURNS) this.#forget(this.#all.values().next().value);
    return entry.turn;
  }

  /** Those that run are looked at again when their time has passed once more. */
  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const entry of this.#all) {
      if (nowMs - entry.usedMs < TURN_TTL_MS) return;
      if (entry.turn.busy) {
        entry.usedMs = nowMs;
        this.#all.delete(entry);
        this.#all.add(entry);
      } else this.#forget(entry);
    }
  }

  #forget(entry: Entry | undefined): void {
    if (entry === undefined) return;
    this.#all.delete(entry);
    const own = this.#byPrincipal.get(entry.principal);
    own?.delete(entry.key);
    if (own?.size === 0) this.#byPrincipal.delete(entry.principal);
  }
}
