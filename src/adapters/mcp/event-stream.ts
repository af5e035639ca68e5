import { StringDecoder } from "node:string_decoder";
import { GatewayError } from "../../core/errors.ts";
import { type ServerSentEvent, SseParser } from "../shared/sse-parser.ts";

/** Where reading a stream of events has come to. */
export interface StreamState {
  /** The last id that an event had; undefined where none had one. */
  lastEventId: string | undefined;
  /** How long the server asks to wait before a reconnection. */
  retryMs: number | undefined;
}

/** Passes the events of a body on. `maxBytes` bounds one of them. */
export async function readEvents(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  take: (event: ServerSentEvent) => void,
  state: StreamState,
): Promise<void> {
  const parser = new SseParser({
    maxLength: maxBytes,
    exceeded: () => new GatewayError("RESULT_TOO_LARGE", `one event is larger than ${maxBytes} bytes`),
  });
  const decoder = new StringDecoder("utf8");
  let first = true;
  for await (const chunk of body) {
    let text = decoder.write(chunk);
    if (first && text !== "") {
      first = false;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    for (const event of parser.push(text)) {
      if (event.lastEventId !== "") state.lastEventId = event.lastEventId;
      take(event);
    }
    state.retryMs = parser.retryMs ?? state.retryMs;
  }
}
