import { durationMs, timestampDate } from "@bufbuild/protobuf/wkt";
import { abortOnReturn, delay, type LinkedController, linkedController } from "./abort.ts";
import { type RequestFacts, ToolgateError, toToolgateError } from "./errors.ts";
import type { CallLog, CallProgress, OutputDelta } from "./gen/toolgate/v1/call_pb.ts";
import type { CallStreamResponse } from "./gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type CallOutcome, outcomeOf } from "./outcome.ts";

/** What a running call tells. */
export type CallEvent =
  | { readonly type: "started"; readonly callId: string; readonly deadline: Date | undefined }
  /** A piece of output; partial until `completed` says how the call ended. */
  | {
      readonly type: "output";
      /** Which part of the output it adds to. */
      readonly index: number;
      /** Whole characters; empty for bytes. */
      readonly text: string;
      /** Undefined for text. */
      readonly data: Uint8Array | undefined;
      /** Media type, on the first piece of a part. */
      readonly mimeType: string;
    }
  | {
      readonly type: "progress";
      readonly current: number;
      readonly total: number | undefined;
      readonly message: string;
    }
  /** The call waits for its turn. `limit`: what it waits for; `position`: its place in line, 1 for the next in turn. */
  | { readonly type: "queued"; readonly limit: string; readonly position: number }
  /** A log line of the tool, not for the model. */
  | { readonly type: "log"; readonly level: string; readonly message: string }
  /** Last. `outcome.result` holds only what was not sent as output. */
  | { readonly type: "completed"; readonly outcome: CallOutcome };

/** How the stream of one call is opened, and opened again. */
export interface CallStreams {
  /** Makes the call. */
  begin(signal: AbortSignal): AsyncIterable<CallStreamResponse>;
  /** Goes on after a sequence. */
  resume(callId: string, afterSequence: bigint, signal: AbortSignal): AsyncIterable<CallStreamResponse>;
  /** How long to go on trying after a lost connection; 0: not at all. */
  readonly resumeWindowMs: number;
  /** Whether making the call twice makes it once, so that one whose beginning was lost can be made again. */
  readonly repeatable: boolean;
}

const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2_000;

/** What tells that a connection was lost, as against an answer. */
const LOST: ReadonlySet<string> = new Set(["GATEWAY_UNREACHABLE", "GATEWAY_CONNECTION_LOST", "STREAM_INCOMPLETE"]);

/**
 * Reads the events of one call: checks that none is missing and that `completed` ends them. After a lost connection it
 * goes on where it was, if that was asked for and the gateway grants it: nothing is told twice. Leaving the loop early,
 * or `return()` while a read is pending, cancels the call up to the upstream.
 */
export function readCall(streams: CallStreams, facts: RequestFacts): AsyncIterableIterator<CallEvent> {
  const controller = linkedController(facts.signal);
  return abortOnReturn(resumedEvents(streams, { ...facts, signal: controller.signal }, controller), controller);
}

async function* resumedEvents(
  streams: CallStreams,
  facts: RequestFacts,
  controller: LinkedController,
): AsyncGenerator<CallEvent, void, undefined> {
  const { signal } = controller;
  const place = new StreamPlace(streams);
  try {
    while (true) {
      try {
        yield* oneConnection(place.open(signal), place, facts);
        return;
      } catch (error) {
        const failure = toToolgateError(error, { ...facts, callId: place.callId });
        const delayMs = signal.aborted ? undefined : place.delayAfter(failure);
        if (delayMs === undefined) throw failure;
        await delay(delayMs, signal).catch((reason: unknown) => {
          throw toToolgateError(reason, { ...facts, callId: place.callId });
        });
      }
    }
  } finally {
    controller.unlink();
    controller.abort();
  }
}

/** How far a stream was read, and how to go on with it. */
class StreamPlace {
  callId: string | undefined;
  /** Sequence of the next message. */
  expected = 0n;
  readonly #streams: CallStreams;
  #windowMs: number;
  #lostAtMs: number | undefined;
  #backoffMs = FIRST_BACKOFF_MS;

  constructor(streams: CallStreams) {
    this.#streams = streams;
    this.#windowMs = streams.repeatable ? streams.resumeWindowMs : 0;
  }

  open(signal: AbortSignal): AsyncIterable<CallStreamResponse> {
    if (this.callId === undefined) return this.#streams.begin(signal);
    return this.#streams.resume(this.callId, this.expected - 1n, signal);
  }

  /** @throws ToolgateError STREAM_BROKEN where a message is missing. */
  take({ sequence, event }: CallStreamResponse): void {
    if (sequence !== this.expected) {
      throw broken(`message ${this.expected} of the stream is missing, got ${sequence}`, this.callId);
    }
    this.expected++;
    this.#lostAtMs = undefined;
    this.#backoffMs = FIRST_BACKOFF_MS;
    if (event.case !== "started") return;
    const { callId, resumeWindow } = event.value;
    this.callId = callId;
    this.#windowMs = resumeWindow === undefined ? 0 : durationMs(resumeWindow);
  }

  /** How long to wait before the next connection; `undefined`: there is to be none. */
  delayAfter({ reason }: ToolgateError): number | undefined {
    if (!LOST.has(reason)) return undefined;
    const nowMs = performance.now();
    this.#lostAtMs ??= nowMs;
    if (nowMs - this.#lostAtMs >= this.#windowMs) return undefined;
    // Half of it by chance, so that a thousand clients do not come back together.
    const delayMs = this.#backoffMs * (0.5 + Math.random() / 2);
    this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_BACKOFF_MS);
    return delayMs;
  }
}

async function* oneConnection(
  messages: AsyncIterable<CallStreamResponse>,
  place: StreamPlace,
  facts: RequestFacts,
): AsyncGenerator<CallEvent, void, undefined> {
  let completed = false;
  try {
    for await (const message of messages) {
      if (completed) throw broken("the gateway sent a message after `completed`", place.callId);
      place.take(message);
      completed = message.event.case === "completed";
      const event = eventOf(message.event, place.callId ?? "");
      if (event !== undefined) yield event;
    }
  } catch (error) {
    // Once `completed` is there the call's outcome is known, whatever happens to the connection after it.
    if (!completed || error instanceof ToolgateError) throw error;
  }
  if (completed) return;
  const text = "the stream ended without `completed`, so the output is cut and the outcome unknown";
  const { effectIfLost: effect } = facts;
  throw new ToolgateError("STREAM_INCOMPLETE", "DATA_LOSS", text, { effect, callId: place.callId });
}

function broken(text: string, callId: string | undefined): ToolgateError {
  return new ToolgateError("STREAM_BROKEN", "DATA_LOSS", text, { effect: "unknown", callId });
}

/** Undefined for a heartbeat and for an event that a newer gateway sends: both mean only that the call goes on. */
function eventOf(event: CallStreamResponse["event"], callId: string): CallEvent | undefined {
  switch (event.case) {
    case "started": {
      const { deadline } = event.value;
      return { type: "started", callId, deadline: deadline === undefined ? undefined : timestampDate(deadline) };
    }
    case "output":
      return outputEvent(event.value);
    case "progress":
      return progressEvent(event.value);
    case "log":
      return logEvent(event.value);
    case "queued":
      return { type: "queued", limit: event.value.limit, position: event.value.position };
    case "completed":
      return { type: "completed", outcome: outcomeOf(callId, event.value) };
    case "heartbeat":
    case undefined:
      break;
  }
  return undefined;
}

function outputEvent({ index, delta, mimeType }: OutputDelta): CallEvent {
  const text = delta.case === "text" ? delta.value : "";
  return { type: "output", index, text, data: delta.case === "data" ? delta.value : undefined, mimeType };
}

function progressEvent({ current, total, message }: CallProgress): CallEvent {
  return { type: "progress", current, total, message };
}

function logEvent({ level, message }: CallLog): CallEvent {
  return { type: "log", level, message };
}
