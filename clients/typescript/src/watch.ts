import { abortOnReturn, delay, type LinkedController, linkedController } from "./abort.ts";
import { ToolgateError, toToolgateError } from "./errors.ts";
import type { DeclarationProblem, WatchResponse } from "./gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { Tool } from "./gen/toolgate/v1/tool_pb.ts";

/** A change of the tools. `revision` grows with each change. */
export type WatchEvent =
  | { readonly type: "upserted"; readonly revision: bigint; readonly tool: Tool }
  | { readonly type: "removed"; readonly revision: bigint; readonly name: string }
  /** The problems of one source as they are now; empty: it is mended or gone. */
  | {
      readonly type: "problems";
      readonly revision: bigint;
      readonly source: string;
      readonly problems: readonly DeclarationProblem[];
    }
  /** Everything up to the revision has been told. */
  | { readonly type: "synced"; readonly revision: bigint }
  /** Forget every tool and problem: a full list follows. */
  | { readonly type: "reset"; readonly revision: bigint };

/** How a watch goes on. */
export interface WatchSettings {
  /** Only changes after this revision; 0: the present tools first. */
  readonly afterRevision: bigint;
  readonly signal: AbortSignal | undefined;
  /** Silence after which a connection counts as lost; the gateway speaks at least every 30 s. */
  readonly silenceMs: number;
  /** Told before each new connection. */
  readonly onReconnect: ((error: ToolgateError, delayMs: number) => void) | undefined;
}

/** Opens the stream of changes after a revision. */
type OpenWatch = (afterRevision: bigint, signal: AbortSignal) => AsyncIterable<WatchResponse>;

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;

/** A gateway that says one of these says it again. */
const FINAL_STATUSES: ReadonlySet<string> = new Set([
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
  "UNIMPLEMENTED",
  "FAILED_PRECONDITION",
]);

/**
 * Reads changes for as long as the caller wants, over as many connections as that takes. After a lost connection it
 * goes on from the last revision that was told in full, so no change is missed; a change may be told twice.
 *
 * @throws ToolgateError CALL_CANCELLED when the signal aborts, and what the gateway refuses for good.
 */
export function watchTools(open: OpenWatch, settings: WatchSettings): AsyncIterableIterator<WatchEvent> {
  const controller = linkedController(settings.signal);
  return abortOnReturn(events(open, settings, controller), controller);
}

async function* events(
  open: OpenWatch,
  settings: WatchSettings,
  controller: LinkedController,
): AsyncGenerator<WatchEvent, void, undefined> {
  const { signal } = controller;
  const place = new ResumePoint(settings.afterRevision);
  let backoffMs = FIRST_BACKOFF_MS;
  try {
    while (true) {
      let failure: ToolgateError;
      try {
        for await (const event of oneConnection(open, place, signal, settings.silenceMs)) {
          backoffMs = FIRST_BACKOFF_MS;
          yield event;
        }
        failure = new ToolgateError("GATEWAY_CONNECTION_LOST", "UNAVAILABLE", "the gateway ended the watch");
      } catch (error) {
        failure = toToolgateError(error, { effectIfLost: "none", signal });
        if (signal.aborted || FINAL_STATUSES.has(failure.status)) throw failure;
      }
      // Half of it by chance, so that a thousand clients of a restarted gateway do not come back together.
      const delayMs = Math.round(backoffMs * (0.5 + Math.random() / 2));
      backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
      settings.onReconnect?.(failure, delayMs);
      await delay(delayMs, signal).catch((reason: unknown) => {
        throw toToolgateError(reason, { effectIfLost: "none", signal });
      });
    }
  } finally {
    controller.unlink();
    controller.abort();
  }
}

/** Where to go on after a lost connection. */
class ResumePoint {
  /** 0: from the present tools. */
  revision: bigint;
  /** Whether the reader knows tools that a fresh list may lack. */
  #toldTools = false;
  /** Whether the list that a connection began with was told in full. */
  #synced: boolean;
  /** Revision of the last event. */
  #current: bigint;

  constructor(afterRevision: bigint) {
    this.revision = afterRevision;
    this.#current = afterRevision;
    this.#synced = afterRevision > 0n;
  }

  /** Whether the reader must forget what it knows before the next connection's list. */
  get needsReset(): boolean {
    return this.revision === 0n && this.#toldTools;
  }

  /** A full list begins. */
  restart(): void {
    this.revision = 0n;
    this.#synced = false;
    this.#toldTools = false;
  }

  /** Takes note of an event that is about to be told. */
  told(event: WatchEvent): void {
    if (event.type === "reset") {
      this.restart();
      return;
    }
    this.#toldTools = true;
    if (event.type === "synced") {
      this.#synced = true;
      this.revision = event.revision;
    } else if (this.#synced && event.revision > this.#current) {
      // One revision may have several events, so only the one before it is surely complete.
      this.revision = this.#current;
    }
    this.#current = event.revision;
  }
}

async function* oneConnection(
  open: OpenWatch,
  place: ResumePoint,
  parent: AbortSignal,
  silenceMs: number,
): AsyncGenerator<WatchEvent, void, undefined> {
  const controller = linkedController(parent);
  const silence = new SilenceTimer(silenceMs, controller);
  try {
    const responses = open(place.revision, controller.signal);
    if (place.needsReset) {
      place.restart();
      yield { type: "reset", revision: 0n };
    }
    silence.start();
    for await (const response of responses) {
      silence.stop();
      const event = eventOf(response);
      if (event !== undefined) {
        place.told(event);
        yield event;
      }
      silence.start();
    }
  } finally {
    silence.stop();
    controller.unlink();
    controller.abort();
  }
}

/** Ends a connection that says nothing while the reader waits; the time a reader takes for itself does not count. */
class SilenceTimer {
  readonly #limitMs: number;
  readonly #controller: LinkedController;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(limitMs: number, controller: LinkedController) {
    this.#limitMs = limitMs;
    this.#controller = controller;
  }

  start(): void {
    this.stop();
    this.#timer = setTimeout(() => {
      const text = `the gateway said nothing for ${this.#limitMs} ms`;
      this.#controller.abort(new ToolgateError("GATEWAY_CONNECTION_LOST", "UNAVAILABLE", text, { retryable: true }));
    }, this.#limitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Undefined for an event that a newer gateway sends. */
function eventOf({ revision, event }: WatchResponse): WatchEvent | undefined {
  switch (event.case) {
    case "upserted":
      return { type: "upserted", revision, tool: event.value };
    case "removed":
      return { type: "removed", revision, name: event.value.name };
    case "problems":
      return { type: "problems", revision, source: event.value.source, problems: event.value.problems };
    case "synced":
      return { type: "synced", revision };
    case "reset":
      return { type: "reset", revision };
    case undefined:
      break;
  }
  return undefined;
}
