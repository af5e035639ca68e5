import { type Clock, sleep } from "../../core/clock.ts";
import type { ChannelAnswer } from "../shared/network/http-channel.ts";
import { readEvents, type StreamState } from "./event-stream.ts";

/** Waits between attempts: the first, and the longest. */
const WAIT_MS = { first: 1_000, most: 60_000 } as const;

/** A stream that lived so long counts as sound: the waits begin anew. */
const SOUND_MS = 30_000;

/** What a listening stream needs. */
export interface ListeningStreamOptions {
  readonly clock: Clock;
  readonly maxBytes: number;
  /** Ends it. */
  readonly signal: AbortSignal;
  open(lastEventId: string | undefined): Promise<ChannelAnswer>;
  /** Takes a message. */
  take(data: string): void;
}

/**
 * The stream by which a server speaks unasked. Many servers have none, and say so in many ways: any answer but a stream
 * of events ends the attempts. A stream that ends or breaks is opened again, after waits that double.
 */
export class ListeningStream {
  readonly #options: ListeningStreamOptions;

  constructor(options: ListeningStreamOptions) {
    this.#options = options;
    // Its only errors are that it is over.
    void this.#run().catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { clock, signal, open, maxBytes, take } = this.#options;
    const state: StreamState = {
      lastEventId: undefined,
      retryMs: undefined,
    };
    for (let waitMs: number = WAIT_MS.first; !signal.aborted; ) {
      const startedMs = clock.monotonicMs();
      const answer = await open(state.lastEventId).catch(() => undefined);
      if (answer !== undefined) {
        if (!isStream(answer)) {
          answer.drop();
          return;
        }
        const passOn = (event: { readonly type: string; readonly data: string }): void => {
          if (event.type === "message" && event.data !== "") take(event.data);
        };
        // How it ended does not matter: it is opened again.
        await readEvents(answer.body, maxBytes, passOn, state).catch(() => undefined);
      }
      if (clock.monotonicMs() - startedMs >= SOUND_MS) waitMs = WAIT_MS.first;
      await sleep(clock, Math.max(waitMs, state.retryMs ?? 0), signal);
      waitMs = Math.min(waitMs * 2, WAIT_MS.most);
    }
  }
}

function isStream(answer: ChannelAnswer): boolean {
  const type = (answer.header("content-type") ?? "").toLowerCase();
  return answer.status === 200 && type.startsWith("text/event-stream");
}
