import type { EventForm } from "../ledger/event-log.ts";
import type { CallOutput } from "./call-record.ts";

/** What an event takes besides its text. */
const EVENT_BYTES = 64;

/**
 * How a call's output is kept. What goes to disk is written as JSON: text, progress and signs of life. The end of a
 * call is always the last event and stays in memory.
 */
export const OUTPUT_FORM: EventForm<CallOutput> = {
  bytesOf(event) {
    switch (event.type) {
      case "delta":
        return EVENT_BYTES + event.text.length * 2;
      case "progress":
      case "log":
        return EVENT_BYTES + event.message.length * 2;
      case "queue-enter":
        return EVENT_BYTES + event.limit.length * 2;
      case "heartbeat":
      case "completed":
        return EVENT_BYTES;
    }
  },
  encode: (events) => Buffer.from(JSON.stringify(events)),
  // What this process wrote a moment ago, and nobody else can.
  decode: (bytes) => JSON.parse(Buffer.from(bytes).toString()) as readonly CallOutput[],
};
