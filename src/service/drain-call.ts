import { GatewayError } from "../core/errors.ts";
import { StreamedText } from "../core/streamed-text.ts";
import { withinMessage } from "../wire/result-codec.ts";
import type { CallEnd, CallEvent } from "./call-record.ts";

/** A call with all its output in the result. */
export interface DrainedCall {
  readonly callId: string;
  readonly end: CallEnd;
}

/**
 * Runs a call to its end and puts the text it streamed into its result: so Call is CallStream, drained. Text beyond
 * 700,000 code points is dropped, and the result says so.
 */
export async function drainCall(events: AsyncIterable<CallEvent>): Promise<DrainedCall> {
  const streamed = new StreamedText();
  let callId = "";
  let end: CallEnd | undefined;
  for await (const event of events) {
    if (event.type === "started") callId = event.callId;
    else if (event.type === "delta") streamed.add(event.index, event.text);
    else if (event.type === "completed") end = event;
  }
  if (end === undefined) throw new GatewayError("INTERNAL", "internal error");
  return { callId, end: end.result === undefined ? end : { ...end, result: withinMessage(streamed.into(end.result)) } };
}
