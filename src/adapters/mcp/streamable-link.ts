import { SdkErrorCode, SdkHttpError, type TransportSendOptions } from "@modelcontextprotocol/client";
import { type Clock, sleep } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson, stringifyJson } from "../../core/json.ts";
import { type LinkedSignal, linkSignals } from "../../core/signal.ts";
import type { ChannelAnswer } from "../shared/network/http-channel.ts";
import type { ServerSentEvent } from "../shared/sse-parser.ts";
import { readEvents, type StreamState } from "./event-stream.ts";
import { ListeningStream } from "./listening-stream.ts";
import type { RemoteAccess } from "./remote-access.ts";
import { modernHeaders } from "./request-headers.ts";
import { type RequestWatch, ServerLink } from "./server-link.ts";

/** How long saying goodbye to a session may take. */
const GOODBYE_MS = 1_000;

/** Wait before a stream that broke off is taken up again, where the server does not say. */
const RESUME_MS = 1_000;

/** How often one answer's stream is taken up again. */
const MAX_RESUMPTIONS = 5;

/** How long a server may keep the stream of an answer open once that has come. */
const LINGER_MS = 1_000;

/** What a link over HTTP needs. */
export interface RemoteLinkOptions {
  readonly access: RemoteAccess;
  readonly clock: Clock;
  /** Most bytes of one message. */
  readonly maxBytes: number;
}

/** A server behind streamable HTTP, of all its revisions. */
export class StreamableLink extends ServerLink {
  readonly #options: RemoteLinkOptions;
  readonly #ended = new AbortController();
  readonly #requests = new Map<string, LinkedSignal>();
  #listening: ListeningStream | undefined;
  #session: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RemoteLinkOptions) {
    super();
    this.#options = options;
  }

  /** The SDK cancels by closing the stream of a request where the revision says so. */
  get hasPerRequestStream(): true {
    return true;
  }

  /** The session that the server has given; also once it is over. */
  get session(): string | undefined {
    return this.#session;
  }

  override start(): Promise<void> {
    return Promise.resolve();
  }

  override close(): Promise<void> {
    // Whoever closes it once more waits for the farewell, too.
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.isClosed) return;
    this.#ended.abort(new GatewayError("GATEWAY_STOPPING", "the connection was closed"));
    this.closed();
    if (this.#session !== undefined) await this.#goodbye(this.#session);
  }

  protected override async transmit(
    message: JsonObject,
    options: TransportSendOptions,
    watch: RequestWatch | undefined,
  ): Promise<void> {
    const id = requestId(message);
    const { requestSignal } = options;
    const link =
      requestSignal === undefined ? linkSignals(this.#ended.signal) : linkSignals(this.#ended.signal, requestSignal);
    if (id !== undefined) this.#requests.set(id, link);
    let handedOver = false;
    try {
      const answer = await this.#post(message, options, link.signal, watch);
      handedOver = await this.#take(answer, { message, id, watch, link, options });
    } finally {
      if (!handedOver) this.#release(id, link);
    }
  }

  protected override cancelled(id: string): void {
    this.#requests.get(id)?.abort(new GatewayError("CALL_CANCELLED", "the request was cancelled"));
  }

  async #post(
    message: JsonObject,
    { headers }: TransportSendOptions,
    signal: AbortSignal,
    watch: RequestWatch | undefined,
  ): Promise<ChannelAnswer> {
    const starts = ownValue(message, "method") === "initialize";
    // Told before it is sent, since nobody tells when it was; that no connection was made is told by its error.
    watch?.sent();
    const answer = await this.#options.access.send({
      method: "POST",
      headers: {
        ...this.#sessionHeaders(starts),
        ...headers,
        ...modernHeaders(message),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: stringifyJson(message),
      signal,
    });
    if (starts && answer.status < 300) this.#session = answer.header("mcp-session-id");
    return answer;
  }

  #sessionHeaders(starts = false): Record<string, string> {
    if (starts) return {};
    return {
      ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      ...(this.version === undefined ? {} : { "mcp-protocol-version": this.version }),
    };
  }

  /** Whether the request's stream goes on by itself. */
  async #take(answer: ChannelAnswer, request: SentRequest): Promise<boolean> {
    const { message, id, watch } = request;
    if (answer.status < 200 || answer.status > 299) {
      await this.#refused(answer, request);
      return false;
    }
    if (id === undefined || answer.status === 202) {
      answer.drop();
      if (ownValue(message, "method") === "notifications/initialized") this.#listen();
      return false;
    }
    const type = (answer.header("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
    if (type === "text/event-stream") {
      void this.#readAnswer(answer, request, id);
      return true;
    }
    if (type !== "application/json") {
      answer.drop();
      const text = `the server answered with ${type === "" ? "no content type" : `\`${type}\``} instead of JSON or events`;
      throw new SdkHttpError(SdkErrorCode.ClientHttpUnexpectedContent, text, { status: answer.status, text: "" });
    }
    const body = await this.#whole(answer);
    const bytes = Buffer.byteLength(body);
    if (!this.receive(parseJson(body), { watch, bytes })) {
      throw new SdkHttpError(SdkErrorCode.ClientHttpUnexpectedContent, "the server's JSON is no message", {
        status: answer.status,
        text: "",
      });
    }
    return false;
  }

  async #whole(answer: ChannelAnswer): Promise<string> {
    const { maxBytes } = this.#options;
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of answer.body) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > maxBytes) throw new GatewayError("RESULT_TOO_LARGE", `the answer is larger than ${maxBytes} bytes`);
    }
    return Buffer.concat(pieces).toString();
  }

  /** An answer that refuses: as an error of JSON-RPC where it is one of the request, else by its status. */
  async #refused(answer: ChannelAnswer, { id, watch, message }: SentRequest): Promise<void> {
    const text = await answer.text();
    const modern = Object.keys(modernHeaders(message)).length > 0;
    const error = modern && id !== undefined && watch !== undefined ? errorFor(jsonOf(text), id) : undefined;
    if (error !== undefined && id !== undefined) {
      this.receive({ jsonrpc: "2.0", id, error }, { watch, bytes: text.length });
      return;
    }
    throw new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `the server answered HTTP ${answer.status}`, {
      status: answer.status,
      text,
    });
  }

  /** Reads the stream of one answer; takes it up again where the server can and it ended too soon. */
  async #readAnswer(answer: ChannelAnswer, { watch, link }: SentRequest, id: string): Promise<void> {
    const state: StreamState = { lastEventId: undefined, retryMs: undefined };
    let stream: ChannelAnswer | undefined = answer;
    for (let resumed = 0; stream !== undefined; resumed += 1) {
      const done = await this.#readOnce(stream, state, { id, watch, link }).catch(() => this.#isOver(id, link));
      if (done || resumed === MAX_RESUMPTIONS || state.lastEventId === undefined) break;
      stream = await this.#resume(state, link.signal).catch(() => undefined);
    }
    const open = this.#requests.get(id) === link;
    this.#release(id, link);
    if (!open || link.signal.aborted) return;
    watch?.lost();
    // The SDK would wait for ever.
    this.receive(
      { jsonrpc: "2.0", id, error: { code: -32_000, message: "the stream ended without an answer" } },
      { bytes: 0 },
    );
  }

  #isOver(id: string, link: LinkedSignal): boolean {
    return link.signal.aborted || this.#requests.get(id) !== link;
  }

  /** Whether the answer came. */
  async #readOnce(
    stream: ChannelAnswer,
    state: StreamState,
    { id, watch, link }: Pick<SentRequest, "watch" | "link"> & { readonly id: string },
  ): Promise<boolean> {
    let linger: Disposable | undefined;
    const take = (event: ServerSentEvent): void => {
      const value = event.type === "message" && event.data !== "" ? jsonOf(event.data) : undefined;
      if (value === undefined) return;
      if (answersTo(value, id)) {
        this.#requests.delete(id);
        linger ??= this.#options.clock.after(LINGER_MS, () => link.abort(new Error("the answer is complete")));
      }
      this.receive(value, { watch, bytes: Buffer.byteLength(event.data) });
    };
    try {
      await readEvents(stream.body, this.#options.maxBytes, take, state);
    } finally {
      linger?.[Symbol.dispose]();
    }
    return linger !== undefined;
  }

  async #resume(state: StreamState, signal: AbortSignal): Promise<ChannelAnswer | undefined> {
    await sleep(this.#options.clock, state.retryMs ?? RESUME_MS, signal);
    const headers = {
      ...this.#sessionHeaders(),
      accept: "text/event-stream",
      "last-event-id": state.lastEventId ?? "",
    };
    const answer = await this.#options.access.send({ method: "GET", headers, signal });
    if (answer.status === 200) return answer;
    answer.drop();
    return undefined;
  }

  /** Opens the stream by which the server speaks unasked. */
  #listen(): void {
    if (this.#listening !== undefined || this.#ended.signal.aborted) return;
    const { access, clock, maxBytes } = this.#options;
    this.#listening = new ListeningStream({
      clock,
      maxBytes,
      signal: this.#ended.signal,
      open: (lastEventId) =>
        access.send({
          method: "GET",
          headers: {
            ...this.#sessionHeaders(),
            accept: "text/event-stream",
            ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
          },
          signal: this.#ended.signal,
        }),
      take: (data) => {
        const value = jsonOf(data);
        if (value !== undefined) this.receive(value, { bytes: data.length });
      },
    });
  }

  #release(id: string | undefined, link: LinkedSignal): void {
    link[Symbol.dispose]();
    if (id !== undefined && this.#requests.get(id) === link) this.#requests.delete(id);
  }

  async #goodbye(session: string): Promise<void> {
    const limit = new AbortController();
    using _timer = this.#options.clock.after(GOODBYE_MS, () => limit.abort());
    const headers = {
      "mcp-session-id": session,
      ...(this.version === undefined ? {} : { "mcp-protocol-version": this.version }),
    };
    // A server need not know the method, and one that is gone has forgotten the session anyway.
    await this.#options.access.send({ method: "DELETE", headers, signal: limit.signal }).then(
      (answer) => answer.drop(),
      () => undefined,
    );
  }
}

interface SentRequest {
  readonly message: JsonObject;
  /** Absent: a notification. */
  readonly id: string | undefined;
  readonly watch: RequestWatch | undefined;
  readonly link: LinkedSignal;
  readonly options: TransportSendOptions;
}

function requestId(message: JsonObject): string | undefined {
  const id = ownValue(message, "id");
  return typeof ownValue(message, "method") === "string" && (typeof id === "number" || typeof id === "string")
    ? String(id)
    : undefined;
}

function answersTo(value: JsonValue, id: string): boolean {
  return [value].flat().some((each) => isJsonObject(each) && !Object.hasOwn(each, "method") && hasId(each, id));
}

function hasId(message: JsonObject, id: string): boolean {
  const own = ownValue(message, "id");
  return (typeof own === "string" || typeof own === "number") && String(own) === id;
}

/** The error of a body that answers the request; one without an id can be about nothing else. */
function errorFor(body: JsonValue | undefined, id: string): JsonValue | undefined {
  if (body === undefined || !isJsonObject(body)) return undefined;
  const error = ownValue(body, "error");
  return (ownValue(body, "id") ?? null) === null || hasId(body, id) ? error : undefined;
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
