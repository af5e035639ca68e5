import type { JSONRPCMessage, Transport, TransportSendOptions } from "@modelcontextprotocol/client";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import type { Question } from "./call-questions.ts";
import { type InputReply, inputReply, inputRequest } from "./input.ts";

/** An error as JSON-RPC has it. Source: https://www.jsonrpc.org/specification#error_object. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: JsonValue | undefined;
}

/** What the server answered to a watched request. */
export type RpcAnswer = { readonly result: JsonValue } | { readonly error: RpcError };

/** Follows one request of the gateway's. Everything is told in the order it was read. */
export interface RequestWatch {
  /** The request left for the server: from now on it may have an effect. */
  sent(): void;
  /** Something came for the request that is not its answer. */
  progress(params: JsonObject): void;
  log(params: JsonObject): void;
  /** The answer as the server gave it, with its size as far as that is known. */
  answered(answer: RpcAnswer, bytes: number): void;
  /** Who calls, where it is a call: questions go to callers alone. */
  readonly caller?: WatchedCaller;
  /** The server asks something of the caller. Absent: it is told no. */
  asked?(question: Question): void;
  /** A question that may have been this call's was told no, since nothing says whose it is. */
  declined?(): void;
  /** No answer will come: what the answer came by has ended. */
  lost(): void;
}

/** Who calls. */
export interface WatchedCaller {
  /** The same for all calls of one caller. */
  readonly id: string;
  /** Whether it takes questions. */
  readonly mayBeAsked: boolean;
}

/** How a message came. */
export interface Arrival {
  /** The request whose own stream it came by. */
  readonly watch?: RequestWatch | undefined;
  /** Size of the message. */
  readonly bytes: number;
}

/**
 * What the SDK gets in place of an answer that a watch has had. The SDK's own reading would refuse a whole result, or a
 * whole list, for one part that it does not know.
 */
const HANDED_OVER = { resultType: "complete", content: [], tools: [], ttlMs: 0, cacheScope: "private" } as const;

/**
 * A connection to a server, below the SDK's protocol: hands progress, log lines and answers of watched requests to their
 * watches, in order and unread, and the rest to the SDK. The SDK takes up an answer at once and a notification later, so
 * what stands before an answer in the same read would come after it, and be dropped.
 */
export abstract class ServerLink implements Transport {
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  onmessage: Transport["onmessage"];
  /** The revision that the server named in its answer to `initialize`. */
  named: string | undefined;
  /** The revision that was agreed on, once it was. */
  protected version: string | undefined;
  readonly #over: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #marked = new WeakMap<object, RequestWatch>();
  readonly #watches = new Map<string, RequestWatch>();
  readonly #tokens = new Map<string, RequestWatch>();
  #closed = false;

  /** Resolves when the connection is over, whoever ended it. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  abstract start(): Promise<void>;
  abstract close(): Promise<void>;

  /** Sends one message; resolves when it was taken, or when its answer is complete, as the connection has it. */
  protected abstract transmit(
    message: JsonObject,
    options: TransportSendOptions,
    watch: RequestWatch | undefined,
  ): Promise<void>;

  /** What a cancelled request leaves behind is freed. */
  protected abstract cancelled(id: string): void;

  /** The request that is sent with this very `headers` object is followed by `watch`. */
  watch(headers: Readonly<Record<string, string>>, watch: RequestWatch): void {
    this.#marked.set(headers, watch);
  }

  setProtocolVersion(version: string): void {
    this.version = version;
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    const watch = options.headers === undefined ? undefined : this.#marked.get(options.headers);
    // The SDK's types say less than JSON, and what it sends is JSON.
    const sent = message as unknown as JsonObject;
    if (watch !== undefined) this.#follow(sent, watch);
    await this.transmit(sent, options, watch);
    const id = cancelledId(sent);
    if (id !== undefined) this.cancelled(id);
  }

  /** The watch of a request; nothing of it is passed on any more. */
  forget(watch: RequestWatch): void {
    for (const [id, each] of this.#watches) if (each === watch) this.#watches.delete(id);
    for (const [token, each] of this.#tokens) if (each === watch) this.#tokens.delete(token);
  }

  /** Takes in what the server sent; false where it is nothing of JSON-RPC. */
  protected receive(value: JsonValue, arrival: Arrival): boolean {
    if (isJsonArray(value)) {
      // Arrays were in MCP for one revision, and some servers still send them.
      return value.map((each) => this.receive(each, arrival)).every(Boolean);
    }
    if (!isJsonObject(value)) return false;
    const method = ownValue(value, "method");
    if (typeof method === "string") {
      if (this.#notified(method, value, arrival) || this.#asked(value, arrival)) return true;
      this.#pass(value);
      return true;
    }
    const id = ownValue(value, "id");
    const answers = Object.hasOwn(value, "result") || Object.hasOwn(value, "error");
    if (!answers || (typeof id !== "string" && typeof id !== "number")) return false;
    this.#answered(String(id), value, arrival.bytes);
    return true;
  }

  /** Ends a request that the server will not answer, or whose answer cannot be taken. */
  protected refuse(id: string, error: RpcError): void {
    this.receive({ jsonrpc: "2.0", id, error: { code: error.code, message: error.message } }, { bytes: 0 });
  }

  /** The watch of a request by its id. */
  protected watchOf(id: string): RequestWatch | undefined {
    return this.#watches.get(id);
  }

  /** The connection is over, whoever ended it; told once. */
  protected closed(): void {
    if (this.#closed) return;
    this.#closed = true;
    const watches = [...this.#watches.values()];
    this.#watches.clear();
    this.#tokens.clear();
    for (const watch of watches) watch.lost();
    this.onclose?.();
    this.#over.resolve();
  }

  protected get isClosed(): boolean {
    return this.#closed;
  }

  #follow(message: JsonObject, watch: RequestWatch): void {
    const id = ownValue(message, "id");
    if (typeof id === "number" || typeof id === "string") this.#watches.set(String(id), watch);
    const token = metaOf(ownValue(message, "params"), "progressToken");
    if (token !== undefined) this.#tokens.set(token, watch);
  }

  /** Whether a watch had it. */
  #notified(method: string, message: JsonObject, { watch }: Arrival): boolean {
    if (Object.hasOwn(message, "id")) return false;
    const params = ownValue(message, "params");
    const facts = params !== undefined && isJsonObject(params) ? params : {};
    if (method === "notifications/progress") {
      const token = ownValue(facts, "progressToken");
      if (typeof token === "string" || typeof token === "number") this.#tokens.get(String(token))?.progress(facts);
      return true;
    }
    if (method !== "notifications/message") return false;
    // Over one channel nothing says whose line it is: with one request alone it is that one's, else nobody's.
    const [only] = this.#watches.values();
    const owner = watch ?? (this.#watches.size === 1 ? only : undefined);
    owner?.log(facts);
    return true;
  }

  /** Whether it is a question to a caller. One that may be anybody's is told no. */
  #asked(message: JsonObject, { watch }: Arrival): boolean {
    const id = ownValue(message, "id");
    if (typeof id !== "string" && typeof id !== "number") return false;
    const params = ownValue(message, "params");
    const request = inputRequest(ownValue(message, "method"), params);
    // That the gateway has no roots, the SDK says itself.
    if (request === undefined || request.kind === "roots") return false;
    const reply = (answer: InputReply): void => {
      const failure = "error" in answer ? { error: { ...answer.error } as JsonObject } : answer;
      // A server that has gone by then does not wait for it.
      this.transmit({ jsonrpc: "2.0", id, ...failure }, {}, undefined).catch(() => undefined);
    };
    const owner = watch ?? this.#named(params) ?? this.#onlyOneToAsk();
    if (owner?.asked !== undefined) owner.asked({ id: String(id), request, reply });
    else {
      for (const each of this.#watches.values()) each.declined?.();
      reply(inputReply(request.kind, { action: "decline" }));
    }
    return true;
  }

  /** The call that the server names in what it asks. No revision has a field for it, and some servers say it all the same. */
  #named(params: JsonValue | undefined): RequestWatch | undefined {
    const token = metaOf(params, "progressToken");
    const id = metaOf(params, "relatedRequestId");
    return (
      (token === undefined ? undefined : this.#tokens.get(token)) ??
      (id === undefined ? undefined : this.#watches.get(id))
    );
  }

  /**
   * The call that a question can only be for: the one that runs. With several it is the one that takes questions, where
   * all are of one caller, since nobody is to be asked in another's name.
   */
  #onlyOneToAsk(): RequestWatch | undefined {
    const calls = [...this.#watches.values()].filter(({ caller }) => caller !== undefined);
    if (calls.length <= 1) return calls[0];
    const [first, ...more] = calls.filter(({ caller }) => caller?.mayBeAsked === true);
    const callers = new Set(calls.map(({ caller }) => caller?.id));
    return more.length === 0 && callers.size === 1 ? first : undefined;
  }

  #answered(id: string, message: JsonObject, bytes: number): void {
    const watch = this.#watches.get(id);
    if (watch === undefined) {
      const result = ownValue(message, "result");
      const named = result !== undefined && isJsonObject(result) ? ownValue(result, "protocolVersion") : undefined;
      if (typeof named === "string") this.named = named;
      this.#pass(message);
      return;
    }
    const error = ownValue(message, "error");
    watch.answered(
      error === undefined ? { result: ownValue(message, "result") ?? null } : { error: rpcError(error) },
      bytes,
    );
    this.forget(watch);
    this.#pass({ jsonrpc: "2.0", id: Number(id), result: HANDED_OVER });
  }

  #pass(message: JsonObject): void {
    const whole = Object.hasOwn(message, "jsonrpc") ? message : { ...message, jsonrpc: "2.0" };
    // The SDK checks it.
    this.onmessage?.(whole as unknown as JSONRPCMessage);
  }
}

/** Reads an error object of any shape. */
export function rpcError(error: JsonValue): RpcError {
  if (!isJsonObject(error)) return { code: 0, message: typeof error === "string" ? error : "" };
  const code = ownValue(error, "code");
  const message = ownValue(error, "message");
  const data = ownValue(error, "data");
  return {
    code: typeof code === "number" ? code : 0,
    message: typeof message === "string" ? message : "",
    ...(data === undefined ? {} : { data }),
  };
}

function cancelledId(message: JsonObject): string | undefined {
  if (ownValue(message, "method") !== "notifications/cancelled") return undefined;
  const params = ownValue(message, "params");
  const id = params !== undefined && isJsonObject(params) ? ownValue(params, "requestId") : undefined;
  return typeof id === "number" || typeof id === "string" ? String(id) : undefined;
}

/** A name or number in a message's `_meta`. */
function metaOf(params: JsonValue | undefined, key: string): string | undefined {
  const meta = params !== undefined && isJsonObject(params) ? ownValue(params, "_meta") : undefined;
  const value = meta !== undefined && isJsonObject(meta) ? ownValue(meta, key) : undefined;
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}
