import { isVisible } from "../core/access.ts";
import type { Clock } from "../core/clock.ts";
import type { Principal } from "../core/principal.ts";
import type { RegistryEvent } from "../core/registry.ts";
import type { ChangeLog, ChangeRecord } from "./change-log.ts";
import type { Snapshot } from "./snapshot.ts";

/** A watcher without events hears this often that it has missed nothing. */
const SYNCED_INTERVAL_MS = 30_000;

/** What a watch reads from. */
export interface WatchSource {
  readonly log: ChangeLog;
  readonly snapshot: Snapshot;
}

/** Who watches, from where, until when. */
export interface WatchOptions {
  readonly afterRevision: number;
  readonly principal: Principal;
  /** Whether the watcher may see problems. */
  readonly problems: boolean;
  /** The watcher's roles were others at that revision, so it has to begin anew. Default false. */
  readonly outdated?: boolean;
  /** Ends the watch without an error. */
  readonly signal: AbortSignal;
  /** Ends the watch with its reason, a GatewayError. */
  readonly stopped: AbortSignal;
  readonly clock: Clock;
}

/**
 * Changes after a revision. Nothing is queued for a watcher: it holds its place in the log and reads on from there, so
 * a slow one gets the last state of each tool and not those in between. Events come in order of revision, the first
 * full listing included, so a watcher that breaks off anywhere can go on after the last revision it saw.
 */
export async function* watchChanges(source: WatchSource, options: WatchOptions): AsyncGenerator<RegistryEvent> {
  const cursor = new Cursor(source, options);
  while (!options.signal.aborted) {
    options.stopped.throwIfAborted();
    const event = cursor.next();
    if (event !== undefined) yield event;
    else if ((await waitForMore(source.log, options)) === "idle") yield cursor.synced();
  }
}

/** A watcher's place in the log. */
class Cursor {
  readonly #source: WatchSource;
  readonly #principal: Principal;
  readonly #sees: (record: ChangeRecord) => boolean;
  /** The last revision told: one of a change that the watcher may not see would tell that there was one. */
  #told: number;
  /** All up to here has been said. */
  #position: number;
  /** Up to here only what exists counts: the watcher began with nothing, so removals mean nothing to it. */
  #listed: number;
  /** Where `synced` is due; absent once it was said. */
  #goal: number | undefined;
  #lost: boolean;

  constructor(source: WatchSource, { afterRevision, problems, principal, outdated = false }: WatchOptions) {
    const { log } = source;
    this.#source = source;
    this.#principal = principal;
    this.#sees = (record) => seesChange(record, principal, problems);
    this.#told = afterRevision;
    this.#position = afterRevision;
    this.#listed = afterRevision === 0 ? log.head : 0;
    this.#goal = log.head;
    this.#lost = afterRevision !== 0 && (outdated || !log.covers(afterRevision));
  }

  /** What is to be said next; `undefined` where there is nothing until the log grows. */
  next(): RegistryEvent | undefined {
    const { log } = this.#source;
    if (this.#lost || log.floor > Math.max(this.#position, this.#listed)) return this.#reset();
    for (let record = log.after(this.#position); record !== undefined; record = log.after(this.#position)) {
      if (this.#goal !== undefined && record.revision > this.#goal) return this.#reached(this.#goal);
      this.#position = record.revision;
      const event = this.#eventOf(record);
      if (event === undefined) continue;
      this.#told = event.revision;
      return event;
    }
    return this.#goal === undefined ? undefined : this.#reached(this.#goal);
  }

  /** That all up to the present place has been said. */
  synced(): RegistryEvent {
    return { type: "synced", revision: this.#told };
  }

  #eventOf(record: ChangeRecord): RegistryEvent | undefined {
    if (!this.#sees(record)) return undefined;
    const { revision, key } = record;
    const { snapshot } = this.#source;
    if (record.kind === "problems") {
      if (record.gone && revision <= this.#listed) return undefined;
      return { type: "problems", revision, source: key, problems: snapshot.problemsOf(key) };
    }
    const view = snapshot.visibleTo(this.#principal).named(key);
    if (view !== undefined) return { type: "upserted", revision, view };
    return revision <= this.#listed ? undefined : { type: "removed", revision, name: key };
  }

  #reached(goal: number): RegistryEvent {
    this.#position = goal;
    this.#told = Math.max(this.#told, this.#source.log.lastSeen(goal, this.#sees));
    this.#goal = undefined;
    return this.synced();
  }

  /** Begins anew. Its revision is 0: a watcher that breaks off right after it has to begin anew too. */
  #reset(): RegistryEvent {
    const { head } = this.#source.log;
    this.#position = 0;
    this.#told = 0;
    this.#listed = head;
    this.#goal = head;
    this.#lost = false;
    return { type: "reset", revision: 0 };
  }
}

/** Whether a principal may know of a change: by any of the rules that the tool has had. */
export function seesChange(record: ChangeRecord, principal: Principal, problems: boolean): boolean {
  if (record.kind === "problems") return problems;
  return record.audiences.some((access) => isVisible(principal, access));
}

/** Waits until there is more, for so long that a progress mark is due, or until a signal aborts. */
function waitForMore(log: ChangeLog, options: WatchOptions): Promise<"more" | "idle"> {
  const { clock, signal, stopped } = options;
  return new Promise((resolve) => {
    const end = (outcome: "more" | "idle"): void => {
      waiter[Symbol.dispose]();
      timer[Symbol.dispose]();
      signal.removeEventListener("abort", onAbort);
      stopped.removeEventListener("abort", onAbort);
      resolve(outcome);
    };
    const onAbort = (): void => end("more");
    const waiter = log.onWake(() => end("more"));
    const timer = clock.after(SYNCED_INTERVAL_MS, () => end("idle"));
    signal.addEventListener("abort", onAbort, { once: true });
    stopped.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted || stopped.aborted) end("more");
  });
}
