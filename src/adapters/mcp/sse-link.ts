import { SdkErrorCode, SdkHttpError, type TransportSendOptions } from "@modelcontextprotocol/client";
import { GatewayError } from "../../core/errors.ts";
import { type JsonObject, parseJson, stringifyJson } from "../../core/json.ts";
import type { ChannelAnswer } from "../shared/network/http-channel.ts";
import type { ServerSentEvent } from "../shared/sse-parser.ts";
import { readEvents } from "./event-stream.ts";
import type { RemoteAccess } from "./remote-access.ts";
import { type RequestWatch, ServerLink } from "./server-link.ts";
import type { RemoteLinkOptions } from "./streamable-link.ts";

/**
 * A server behind HTTP with SSE, as MCP had it before streamable HTTP: one stream brings all that the server says, and
 * each message to it is a request of its own. Source: MCP 2024-11-05, basic/transports.
 */
export class SseLink extends ServerLink {
  readonly #access: RemoteAccess;
  readonly #maxBytes: number;
  readonly #ended = new AbortController();
  #endpoint: string | undefined;

  constructor({ access, maxBytes }: RemoteLinkOptions) {
    super();
    this.#access = access;
    this.#maxBytes = maxBytes;
  }

  /** Opens the stream; resolves when the server has said where messages go. */
  override async start(): Promise<void> {
    const answer = await this.#access.send({
      method: "GET",
      headers: { accept: "text/event-stream" },
      signal: this.#ended.signal,
    });
    const type = (answer.header("content-type") ?? "").toLowerCase();
    if (answer.status !== 200 || !type.startsWith("text/event-stream")) {
      const text = await answer.text();
      throw new SdkHttpError(
        SdkErrorCode.ClientHttpFailedToOpenStream,
        `the server answered HTTP ${answer.status} without events`,
        {
          status: answer.status,
          text,
        },
      );
    }
    const ready = Promise.withResolvers<void>();
    void this.#read(answer, () => ready.resolve()).then(() => {
      ready.reject(new Error("the stream of events ended before it named an endpoint"));
      this.closed();
    });
    await ready.promise;
  }

  override close(): Promise<void> {
    this.#ended.abort(new GatewayError("GATEWAY_STOPPING", "the connection was closed"));
    this.closed();
    return Promise.resolve();
  }

  protected override async transmit(
    message: JsonObject,
    _options: TransportSendOptions,
    watch: RequestWatch | undefined,
  ): Promise<void> {
    if (this.#endpoint === undefined) throw new Error("the server has named no endpoint");
    watch?.sent();
    const answer = await this.#access.send({
      method: "POST",
      target: this.#endpoint,
      headers: {
        "content-type": "application/json",
        ...(this.version === undefined ? {} : { "mcp-protocol-version": this.version }),
      },
      body: stringifyJson(message),
      signal: this.#ended.signal,
    });
    if (answer.status >= 200 && answer.status <= 299) {
      answer.drop();
      return;
    }
    const text = await answer.text();
    throw new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `the server answered HTTP ${answer.status}`, {
      status: answer.status,
      text,
    });
  }

  protected override cancelled(id: string): void {
    const watch = this.watchOf(id);
    if (watch !== undefined) this.forget(watch);
  }

  async #read(answer: ChannelAnswer, onEndpoint: () => void): Promise<void> {
    const take = (event: ServerSentEvent): void => {
      if (event.type === "endpoint") {
        this.#endpoint = this.#endpointOf(event.data);
        if (this.#endpoint !== undefined) onEndpoint();
      } else if (event.type === "message") this.#message(event.data);
    };
    const state = { lastEventId: undefined, retryMs: undefined };
    // However it ended, it is over.
    await readEvents(answer.body, this.#maxBytes, take, state).catch(() => undefined);
  }

  /** Messages, and with them credentials, go to the server's own origin alone. */
  #endpointOf(text: string): string | undefined {
    const { origin, target } = this.#access;
    const url = URL.canParse(text, origin + target) ? new URL(text, origin + target) : undefined;
    return url?.origin === origin ? url.pathname + url.search : undefined;
  }

  #message(data: string): void {
    try {
      this.receive(parseJson(data), { bytes: Buffer.byteLength(data) });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      // What is no JSON is no message.
    }
  }
}
