import { timestampDate } from "@bufbuild/protobuf/wkt";
import { abortOnReturn, type LinkedController, linkedController } from "./abort.ts";
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
  /** A log line of the tool, not for the model. */
  | { readonly type: "log"; readonly level: string; readonly message: string }
  /** Last. `outcome.result` holds only what was not sent as output. */
  | { readonly type: "completed"; readonly outcome: CallOutcome };

/**
 * Reads the events of one call: checks that none is missing and that `completed` ends them. Leaving the loop early, or
 * `return()` while a read is pending, cancels the call up to the upstream.
 */
export function readCall(
  open: (signal: AbortSignal) => AsyncIterable<CallStreamResponse>,
  facts: RequestFacts,
): AsyncIterableIterator<CallEvent> {
  const controller = linkedController(facts.signal);
  return abortOnReturn(checkedEvents(open, { ...facts, signal: controller.signal }, controller), controller);
}

async function* checkedEvents(
  open: (signal: AbortSignal) => AsyncIterable<CallStreamResponse>,
  facts: RequestFacts,
  controller: LinkedController,
): AsyncGenerator<CallEvent, void, undefined> {
  let callId: string | undefined;
  let completed = false;
  let expected = 0n;
  try {
    for await (const message of open(controller.signal)) {
      if (completed) throw broken("the gateway sent a message after `completed`", callId);
      if (message.sequence !== expected) {
        throw broken(`message ${expected} of the stream is missing, got ${message.sequence}`, callId);
      }
      expected++;
      if (message.event.case === "started") callId = message.event.value.callId;
      completed = message.event.case === "completed";
      const event = eventOf(message.event, callId ?? "");
      if (event !== undefined) yield event;
    }
  } catch (error) {
    // Once `completed` is there the call's outcome is known, whatever happens to the connection after it.
    if (!completed || error instanceof ToolgateError) throw toToolgateError(error, { ...facts, callId });
  } finally {
    controller.unlink();
    controller.abort();
  }
  if (!completed) {
    const text = "the stream ended without `completed`, so the output is cut and the outcome unknown";
    throw new ToolgateError("STREAM_INCOMPLETE", "DATA_LOSS", text, { effect: facts.effectIfLost, callId });
  }
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
