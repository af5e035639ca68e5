import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import { type CallEvent, type CallStreams, readCall } from "./call-stream.ts";
import { type EffectName, ToolgateError, toToolgateError } from "./errors.ts";
import { type DiagnoseResponse, type ExplainResponse, OperatorService } from "./gen/toolgate/v1/operator_service_pb.ts";
import { ResultService } from "./gen/toolgate/v1/result_service_pb.ts";
import {
  type ListResponse,
  type RegisterResponse,
  type ToolFilter,
  ToolFilterSchema,
  ToolGatewayService,
} from "./gen/toolgate/v1/tool_gateway_service_pb.ts";
import { SchemaForm, type Tool, type ToolKind, type ToolState } from "./gen/toolgate/v1/tool_pb.ts";
import { type CallOutcome, outcomeOf } from "./outcome.ts";
import { pageOf, type ReadResultOptions, type ResultPage, readRequest } from "./read-result.ts";
import {
  callOptions,
  type InvokeOptions,
  invocation,
  invokeOptions,
  type RequestOptions,
  type ToolArguments,
} from "./request.ts";
import { type WatchEvent, watchTools } from "./watch.ts";

/** Defaults of a client. */
export interface ClientOptions {
  /** Longest time of a request that is not a stream, in milliseconds. Default 60,000; `Infinity`: none. */
  readonly timeoutMs?: number;
  /** Longest time of a streamed call, in milliseconds. Default 600,000; `Infinity`: none. */
  readonly streamTimeoutMs?: number;
  /** Headers of every request, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Which tools; all set fields must match. */
export interface ToolSelection {
  /** Name globs (`*`, `?`), any may match. */
  readonly names?: readonly string[] | undefined;
  /** Any may match. */
  readonly kinds?: readonly ToolKind[] | undefined;
  /** Any may match. Default: all but disabled. */
  readonly states?: readonly ToolState[] | undefined;
  /** All must match. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Names of toolsets, any may match. */
  readonly toolsets?: readonly string[] | undefined;
}

/** How to list tools. */
export interface ListOptions extends RequestOptions, ToolSelection {
  /** Tools a page; the gateway's default is 100, its most 1,000. */
  readonly pageSize?: number | undefined;
  /** Leave the schemas out. */
  readonly omitSchemas?: boolean | undefined;
  /** How schemas of arguments are written: see {@link SchemaForm}. Default: as declared. */
  readonly schemaForm?: SchemaForm | undefined;
}

/** How to get a tool. */
export interface GetOptions extends RequestOptions {
  /** How the schema of arguments is written: see {@link SchemaForm}. Default: as declared. */
  readonly schemaForm?: SchemaForm | undefined;
}

/** How to register a declaration. */
export interface RegisterOptions extends RequestOptions {
  /** Default `yaml`, which reads JSON too. */
  readonly format?: "yaml" | "json" | undefined;
  /** Check only. */
  readonly validateOnly?: boolean | undefined;
  /** Replace only this version. */
  readonly etag?: string | undefined;
  /** Fail with TOOL_EXISTS if the name is taken. */
  readonly mustNotExist?: boolean | undefined;
  /** The registration lapses after this long unless it is made again, in milliseconds. */
  readonly leaseMs?: number | undefined;
}

/** How to remove a registration. */
export interface UnregisterOptions extends RequestOptions {
  /** Remove only this version. */
  readonly etag?: string | undefined;
  /** Succeed when it is gone already. */
  readonly allowMissing?: boolean | undefined;
}

/** How to stream a call. */
export interface StreamOptions extends InvokeOptions {
  /** The gateway's sign of life after this long without output, in milliseconds. Default 15,000; 0: never. */
  readonly heartbeatMs?: number | undefined;
  /**
   * Go on where the stream was when the connection is lost, for so long in milliseconds; the gateway may grant less.
   * With a `requestId` a call whose very beginning was lost is made again, too. Default 0: a lost connection ends the
   * call. Over HTTP/1.1 leaving the loop then ends the call only after this time.
   */
  readonly resumeWindowMs?: number | undefined;
}

/** How to watch tools. `timeoutMs` does not apply: a watch lasts until it is left. */
export interface WatchOptions extends Omit<RequestOptions, "timeoutMs">, ToolSelection {
  /** Only changes after this revision. Default 0: the present tools first. */
  readonly afterRevision?: bigint | undefined;
  /** How schemas of arguments are written: see {@link SchemaForm}. Default: as declared. */
  readonly schemaForm?: SchemaForm | undefined;
  /** Silence after which a connection counts as lost, in milliseconds. Default 90,000. */
  readonly silenceMs?: number | undefined;
  /** Told before each new connection. */
  readonly onReconnect?: WatchReconnect | undefined;
}

/** Told why a watch connects again, and after how long. */
export type WatchReconnect = Parameters<typeof watchTools>[1]["onReconnect"];

/** A client of one gateway. What goes wrong with a request is a ToolgateError; no request is sent twice unless that was asked for. */
export interface ToolgateClient {
  /** All matching tools in order of name, page by page as they are read. */
  list(options?: ListOptions): AsyncIterable<Tool>;
  /** As {@link list}, by pages; the first has the declaration problems, each has the revision. */
  listPages(options?: ListOptions): AsyncIterable<ListResponse>;
  /** One tool, by name or alias. */
  get(name: string, options?: GetOptions): Promise<Tool>;
  /** Calls a tool and waits for its result. */
  call(name: string, args?: ToolArguments, options?: InvokeOptions): Promise<CallOutcome>;
  /**
   * Calls a tool and reads its output as it appears. Nothing happens before the first read; leaving the loop cancels the
   * call up to the upstream.
   */
  callStream(name: string, args?: ToolArguments, options?: StreamOptions): AsyncIterableIterator<CallEvent>;
  /**
   * Reads a page of a result that was too long to be given whole, by the handle in its `truncation` or the URI of a link
   * of it.
   */
  readResult(handle: string, options?: ReadResultOptions): Promise<ResultPage>;
  /** Changes of the tools, over lost connections. Leaving the loop ends it. */
  watch(options?: WatchOptions): AsyncIterableIterator<WatchEvent>;
  /** Registers a declaration, or replaces it. */
  register(declaration: string, options?: RegisterOptions): Promise<RegisterResponse>;
  /** Removes what was registered over the service. Returns the revision after it. */
  unregister(name: string, options?: UnregisterOptions): Promise<bigint>;
  /** The policy in force for a tool and where each value came from. */
  explain(name: string, options?: RequestOptions): Promise<ExplainResponse>;
  /** Lets the gateway examine itself and reach each upstream once. */
  diagnose(options?: RequestOptions): Promise<DiagnoseResponse>;
}

/** Makes a client over a transport, such as that of `@toolgate/client/node` or `@toolgate/client/browser`. */
export function createToolgateClient(transport: Transport, options: ClientOptions = {}): ToolgateClient {
  return new TransportClient(transport, options);
}

interface Defaults {
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

class TransportClient implements ToolgateClient {
  readonly #gateway: Client<typeof ToolGatewayService>;
  readonly #operator: Client<typeof OperatorService>;
  readonly #results: Client<typeof ResultService>;
  readonly #unary: Defaults;
  readonly #stream: Defaults;

  constructor(transport: Transport, options: ClientOptions) {
    this.#gateway = createClient(ToolGatewayService, transport);
    this.#operator = createClient(OperatorService, transport);
    this.#results = createClient(ResultService, transport);
    const headers = options.headers ?? {};
    this.#unary = { headers, timeoutMs: options.timeoutMs ?? 60_000 };
    this.#stream = { headers, timeoutMs: options.streamTimeoutMs ?? 600_000 };
  }

  async *list(options: ListOptions = {}): AsyncGenerator<Tool, void, undefined> {
    for await (const page of this.listPages(options)) yield* page.tools;
  }

  async *listPages(options: ListOptions = {}): AsyncGenerator<ListResponse, void, undefined> {
    const request = {
      pageSize: options.pageSize ?? 0,
      omitSchemas: options.omitSchemas ?? false,
      schemaForm: options.schemaForm ?? SchemaForm.UNSPECIFIED,
      filter: filterOf(options),
    };
    let pageToken = "";
    do {
      const page = await this.#read(options, (rpc) => this.#gateway.list({ ...request, pageToken }, rpc));
      yield page;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  async get(name: string, options: GetOptions = {}): Promise<Tool> {
    const request = { name, schemaForm: options.schemaForm ?? SchemaForm.UNSPECIFIED };
    const { tool } = await this.#read(options, (rpc) => this.#gateway.get(request, rpc));
    if (tool === undefined)
      throw new ToolgateError("RPC_FAILED", "INTERNAL", "the gateway answered Get without a tool");
    return tool;
  }

  async call(name: string, args: ToolArguments = {}, options: InvokeOptions = {}): Promise<CallOutcome> {
    const request = { invocation: invocation(name, args, options, this.#unary.timeoutMs) };
    const rpc = invokeOptions(options, this.#unary);
    const response = await settle(this.#gateway.call(request, rpc), effectIfLost(options), options.signal);
    return outcomeOf(response.callId, response);
  }

  callStream(name: string, args: ToolArguments = {}, options: StreamOptions = {}): AsyncIterableIterator<CallEvent> {
    const { heartbeatMs, resumeWindowMs = 0, requestId = "" } = options;
    const heartbeat = heartbeatMs === undefined ? {} : { heartbeat: durationFromMs(heartbeatMs) };
    const request = {
      invocation: invocation(name, args, options, this.#stream.timeoutMs),
      ...heartbeat,
      ...(resumeWindowMs === 0 ? {} : { resumeWindow: durationFromMs(resumeWindowMs) }),
    };
    const rpc = invokeOptions(options, this.#stream);
    const left = timeLeft(rpc.timeoutMs);
    const facts = { effectIfLost: effectIfLost(options), signal: options.signal };
    const streams: CallStreams = {
      begin: (signal) => this.#gateway.callStream(request, { ...rpc, ...left(), signal }),
      resume: (callId, afterSequence, signal) =>
        this.#gateway.callStream({ resume: { callId, afterSequence }, ...heartbeat }, { ...rpc, ...left(), signal }),
      resumeWindowMs,
      repeatable: requestId !== "",
    };
    return readCall(streams, facts);
  }

  async readResult(handle: string, options: ReadResultOptions = {}): Promise<ResultPage> {
    return pageOf(await this.#read(options, (rpc) => this.#results.read(readRequest(handle, options), rpc)));
  }

  watch(options: WatchOptions = {}): AsyncIterableIterator<WatchEvent> {
    const rpc = callOptions({ headers: options.headers }, { ...this.#stream, timeoutMs: Number.POSITIVE_INFINITY });
    const asked = { filter: filterOf(options), schemaForm: options.schemaForm ?? SchemaForm.UNSPECIFIED };
    return watchTools((afterRevision, signal) => this.#gateway.watch({ afterRevision, ...asked }, { ...rpc, signal }), {
      afterRevision: options.afterRevision ?? 0n,
      signal: options.signal,
      silenceMs: options.silenceMs ?? 90_000,
      onReconnect: options.onReconnect,
    });
  }

  async register(declaration: string, options: RegisterOptions = {}): Promise<RegisterResponse> {
    const request = {
      declaration: {
        case: options.format === "json" ? ("declarationJson" as const) : ("declarationYaml" as const),
        value: declaration,
      },
      validateOnly: options.validateOnly ?? false,
      etag: options.etag ?? "",
      mustNotExist: options.mustNotExist ?? false,
      ...(options.leaseMs === undefined ? {} : { lease: durationFromMs(options.leaseMs) }),
    };
    const rpc = callOptions(options, this.#unary);
    return settle(this.#gateway.register(request, rpc), effectIfLost(options), options.signal);
  }

  async unregister(name: string, options: UnregisterOptions = {}): Promise<bigint> {
    const request = { name, etag: options.etag ?? "", allowMissing: options.allowMissing ?? false };
    const rpc = callOptions(options, this.#unary);
    const response = await settle(this.#gateway.unregister(request, rpc), "unknown", options.signal);
    return response.revision;
  }

  async explain(name: string, options: RequestOptions = {}): Promise<ExplainResponse> {
    return this.#read(options, (rpc) => this.#operator.explain({ name }, rpc));
  }

  async diagnose(options: RequestOptions = {}): Promise<DiagnoseResponse> {
    return this.#read(options, (rpc) => this.#operator.diagnose({}, rpc));
  }

  /** A request that changes nothing. */
  async #read<T>(options: RequestOptions, send: (rpc: CallOptions) => Promise<T>): Promise<T> {
    return settle(send(callOptions(options, this.#unary)), "none", options.signal);
  }
}

async function settle<T>(response: Promise<T>, lost: EffectName, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await response;
  } catch (error) {
    throw toToolgateError(error, { effectIfLost: lost, signal });
  }
}

/** What is left of a time limit that begins with the first request. */
function timeLeft(timeoutMs: number | undefined): () => { readonly timeoutMs?: number } {
  let sinceMs: number | undefined;
  return () => {
    sinceMs ??= performance.now();
    return timeoutMs === undefined
      ? {}
      : { timeoutMs: Math.max(1, Math.ceil(timeoutMs - (performance.now() - sinceMs))) };
  };
}

function effectIfLost(options: { readonly validateOnly?: boolean | undefined }): EffectName {
  return options.validateOnly === true ? "none" : "unknown";
}

function filterOf({ names, kinds, states, labels, toolsets }: ToolSelection): ToolFilter {
  const lists = { names: [...(names ?? [])], kinds: [...(kinds ?? [])], states: [...(states ?? [])] };
  return create(ToolFilterSchema, { ...lists, labels: { ...labels }, toolsets: [...(toolsets ?? [])] });
}
