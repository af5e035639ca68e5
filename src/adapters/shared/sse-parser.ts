import { LineSplitter, type PieceLimit } from "./line-splitter.ts";

/** One server-sent event. */
export interface ServerSentEvent {
  /** `message` where the stream names no type. */
  readonly type: string;
  /** Lines of data joined by LF. */
  readonly data: string;
  /** The last id the stream gave, with this event or before it. */
  readonly lastEventId: string;
}

/**
 * Reads a stream of server-sent events from decoded text without its byte order mark, cut anywhere. Source:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation.
 */
export class SseParser {
  readonly #lines: LineSplitter;
  readonly #limit: PieceLimit;
  #data: string[] = [];
  #dataLength = 0;
  #type = "";
  #lastEventId = "";
  #retryMs: number | undefined;

  /** The limit is for each line and for the data of each event. */
  constructor(limit: PieceLimit) {
    this.#lines = new LineSplitter("any", limit);
    this.#limit = limit;
  }

  /** How long the stream asks to wait before a reconnection. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  /** The events that end in this piece. Throws the limit's error for an event or line that is too long. */
  push(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    for (const line of this.#lines.push(piece)) {
      const event = this.#line(line);
      if (event !== undefined) events.push(event);
    }
    return events;
  }

  /**
   * The event that the end of the stream left open. A browser drops it, since it cannot tell an end from a cut; to be
   * called only where the transport says that the stream is whole.
   */
  end(): ServerSentEvent | undefined {
    const rest = this.#lines.end();
    if (rest !== undefined) this.#line(rest);
    return this.#dispatch();
  }

  #line(line: string): ServerSentEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#addData(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#lastEventId = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.#retryMs = Number(value);
    return undefined;
  }

  #addData(value: string): void {
    this.#data.push(value);
    this.#dataLength += value.length + 1;
    // The last line's LF does not count.
    if (this.#dataLength - 1 > this.#limit.maxLength) throw this.#limit.exceeded("event");
  }

  #dispatch(): ServerSentEvent | undefined {
    const data = this.#data;
    const type = this.#type === "" ? "message" : this.#type;
    this.#data = [];
    this.#dataLength = 0;
    this.#type = "";
    if (data.length === 0) return undefined;
    return { type, data: data.join("\n"), lastEventId: this.#lastEventId };
  }
}
