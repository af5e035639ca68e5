import { randomUUID } from "node:crypto";
import type { Clock } from "../../core/clock.ts";

/** Most calls of one server that wait for their callers: each holds a request of the server's open. */
const MAX_PARKED = 32;

/** How long a call waits for its caller. */
const PARKED_MS = 10 * 60_000;

/** A call that can wait for its caller. */
export interface Parkable {
  /** Nobody came: says no to the server, and ends the call. */
  abandon(reason: string): void;
}

/** The calls of one server that wait for an answer of their callers: at most 32, for at most 10 minutes. */
export class ParkedCalls<C extends Parkable> {
  readonly #clock: Clock;
  readonly #calls = new Map<string, { readonly call: C; readonly timer: Disposable }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get hasRoom(): boolean {
    return this.#calls.size < MAX_PARKED;
  }

  /** Keeps a call, and gives the name to take it up by and how long it is kept. */
  keep(call: C): { readonly state: string; readonly expiresInMs: number } {
    const state = randomUUID();
    const timer = this.#clock.after(PARKED_MS, () => {
      this.#calls.delete(state);
      call.abandon("nobody answered in time");
    });
    this.#calls.set(state, { call, timer });
    return { state, expiresInMs: PARKED_MS };
  }

  /** The call of that name, which is kept no longer; `undefined`: there is none. */
  take(state: string): C | undefined {
    const kept = this.#calls.get(state);
    this.#calls.delete(state);
    kept?.timer[Symbol.dispose]();
    return kept?.call;
  }

  /** Ends them all. */
  abandon(reason: string): void {
    for (const { call, timer } of this.#calls.values()) {
      timer[Symbol.dispose]();
      call.abandon(reason);
    }
    this.#calls.clear();
  }
}
