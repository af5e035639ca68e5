import type { Clock } from "../core/clock.ts";
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
  /** Whether the watcher may see problems. */
  readonly problems: boolean;
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
  readonly #problems: boolean;
  /** All up to here has been said. */
  #position: number;
  /** Up to here only what exists counts: the watcher began with nothing, so removals mean nothing to it. */
  #listed: number;
  /** Where `synced` is due; absent once it was said. */
  #goal: number | undefined;
  #lost: boolean;

  constructor(source: WatchSource, { afterRevision, problems }: WatchOptions) {
    const { log } = source;
    this.#source = source;
    this.#problems = problems;
    this.#position = afterRevision;
    this.#listed = afterRevision === 0 ? log.head : 0;
    this.#goal = log.head;
    this.#lost = afterRevision !== 0 && !log.covers(afterRevision);
  }

  /** What is to be said next; `undefined` where there is nothing until the log grows. */
  next(): RegistryEvent | undefined {
    const { log, snapshot } = this.#source;
    if (this.#lost || log.floor > Math.max(this.#position, this.#listed)) return this.#reset();
    for (let record = log.after(this.#position); record !== undefined; record = log.after(this.#position)) {
      if (this.#goal !== undefined && record.revision > this.#goal) return this.#reached(this.#goal);
      this.#position = record.revision;
      if (record.gone && record.revision <= this.#listed) continue;
      const event = eventOf(record, snapshot, this.#problems);
      if (event !== undefined) return event;
    }
    return this.#goal === undefined ? undefined : this.#reached(this.#goal);
  }

  /** That all up to the present place has been said. */
  synced(): RegistryEvent {
    return { type: "synced", revision: this.#position };
  }

  #reached(goal: number): RegistryEvent {
    this.#position = goal;
    this.#goal = undefined;
    return this.synced();
  }

  /** Begins anew. Its revision is 0: a watcher that breaks off right after it has to begin anew too. */
  #reset(): RegistryEvent {
    const { head } = this.#source.log;
    this.#position = 0;
    this.#listed = head;
    this.#goal = head;
    this.#lost = false;
    return { type: "reset", revision: 0 };
  }
}

function eventOf(record: ChangeRecord, snapshot: Snapshot, problems: boolean): RegistryEvent | undefined {
  const { revision, key } = record;
  if (record.kind === "problems") {
    return problems ? { type: "problems", revision, source: key, problems: snapshot.problemsOf(key) } : undefined;
  }
  const view = snapshot.named(key);
  return view === undefined ? { type: "removed", revision, name: key } : { type: "upserted", revision, view };
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
