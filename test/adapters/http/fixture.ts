import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type LookupFunction,
  type Socket,
  type Server as TcpServer,
} from "node:net";
import { createHttpAdapter, httpAdapter } from "../../../src/adapters/http/index.ts";
import type { AdapterSettings, Configured, Upstream } from "../../../src/core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent, UpstreamExchange, UpstreamResult } from "../../../src/core/call.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { ANONYMOUS } from "../../../src/core/principal.ts";
import type { DeclaredTool } from "../../../src/core/tool.ts";
import { createEnvironmentSecrets } from "../../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../../src/secrets/secret-memory.ts";

/** A request as an upstream saw it. */
export interface SeenRequest {
  readonly method: string;
  /** Path and query as they came, not decoded. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: IncomingMessage["headers"];
  /** Its bytes as UTF-8. */
  readonly body: string;
  readonly bytes: Buffer;
}

/** A real HTTP server on loopback. */
export interface TestUpstream extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  readonly requests: readonly SeenRequest[];
  /** Every connection that was made, closed ones too. */
  readonly sockets: readonly Socket[];
  /** The next request that comes, its body read. */
  nextRequest(): Promise<SeenRequest>;
}

type Respond = (response: ServerResponse, request: SeenRequest) => void;

/** Starts an upstream that answers each request, once its body is there. */
export async function startUpstream(respond: Respond, host = "127.0.0.1"): Promise<TestUpstream> {
  const requests: SeenRequest[] = [];
  const waiting: ((request: SeenRequest) => void)[] = [];
  const server = createServer((incoming, response) => {
    void readBody(incoming).then((bytes) => {
      const { method = "", url: target = "", headers } = incoming;
      const request = { method, target, headers, body: bytes.toString("utf8"), bytes };
      requests.push(request);
      for (const resolve of waiting.splice(0)) resolve(request);
      respond(response, request);
    });
  });
  const tcp = await listen(server, host);
  return {
    ...tcp,
    requests,
    nextRequest: () => new Promise((resolve) => waiting.push(resolve)),
  };
}

/** An upstream that answers every request with the same JSON. */
export function startJsonUpstream(value: unknown = { code: 0 }): Promise<TestUpstream> {
  return startUpstream((response) => sendJson(response, 200, value));
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(typeof value === "string" ? value : JSON.stringify(value));
}

/** Answers with bytes of a content type. */
export function send(response: ServerResponse, contentType: string, body: string | Uint8Array): void {
  response.writeHead(200, { "content-type": contentType });
  response.end(body);
}

/** A TCP server that can break the rules of HTTP. `onData` gets each connection and what came on it. */
export async function startRawUpstream(
  onData: (socket: Socket, text: string) => void,
): Promise<Omit<TestUpstream, "requests" | "nextRequest">> {
  const server = createTcpServer((socket) => socket.on("data", (data) => onData(socket, data.toString("latin1"))));
  return listen(server, "127.0.0.1");
}

async function listen(server: TcpServer, host: string): Promise<Omit<TestUpstream, "requests" | "nextRequest">> {
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => {
    // A client that goes away is what many tests are about.
    socket.on("error", () => undefined);
    sockets.push(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    port,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** What a test declares. */
export interface ToolOptions {
  /** Default `order_status`. */
  readonly name?: string;
  /** The HTTP keys. */
  readonly keys: JsonObject;
  /** Properties of the input schema; all are required unless `required` says otherwise. */
  readonly params?: JsonObject;
  readonly required?: readonly string[];
  /** Instead of the two above. */
  readonly inputSchema?: JsonObject;
  readonly delivery?: DeclaredTool["delivery"];
  readonly hints?: DeclaredTool["hints"];
  readonly format?: AdapterSettings["format"];
  readonly timeouts?: Partial<AdapterSettings["timeouts"]>;
  readonly maxResponseBytes?: number;
  /** Default `all`. */
  readonly reach?: AdapterSettings["reach"];
  /** What gateway.yaml says. */
  readonly egress?: AdapterSettings["egress"];
  readonly pool?: AdapterSettings["pool"];
  readonly environment?: Record<string, string | undefined>;
  readonly clock?: Clock;
  readonly changed?: () => void;
  /** Instead of the system's. */
  readonly lookup?: LookupFunction;
  /** Variables that proxies are taken from. */
  readonly proxies?: Record<string, string>;
  /** One that other tools use too, instead of one with the two above. */
  readonly adapter?: ReturnType<typeof createHttpAdapter>;
}

/** Compiles a declaration. */
export function configure(options: ToolOptions): Configured<unknown> {
  const properties = options.params ?? {};
  const tool: DeclaredTool = {
    name: options.name ?? "order_status",
    title: "",
    description: "Looks an order up",
    kind: "http",
    inputSchema: options.inputSchema ?? {
      type: "object",
      properties,
      required: options.required ?? Object.keys(properties),
      additionalProperties: false,
    },
    outputSchema: undefined,
    hints: options.hints ?? {},
    labels: {},
    delivery: options.delivery ?? "conclusive",
    enabled: true,
  };
  return httpAdapter.configure(options.keys, tool, {
    timeouts: { connectMs: 60_000, readMs: 60_000, idleMs: 60_000, ...options.timeouts },
    maxResponseBytes: options.maxResponseBytes ?? 1024 * 1024,
    format: options.format ?? "auto",
    pool: options.pool ?? {},
    reach: options.reach ?? "all",
    ...(options.egress === undefined ? {} : { egress: options.egress }),
  });
}

/** Messages of a declaration that is refused, each after its pointer. */
export function problemsOf(options: ToolOptions): string[] {
  const configured = configure(options);
  return configured.ok ? [] : configured.issues.map((issue) => `${issue.pointer} ${issue.message}`);
}

/** Compiles and opens a tool. Fails where the declaration is refused. */
export async function openTool(options: ToolOptions): Promise<Upstream> {
  const configured = configure(options);
  if (!configured.ok) throw new Error(JSON.stringify(configured.issues));
  const deps = {
    clock: options.clock ?? systemClock,
    logger: silentLogger,
    secrets: createEnvironmentSecrets(options.environment ?? {}, new SecretMemory()),
    changed: options.changed ?? (() => undefined),
  };
  const { lookup, proxies } = options;
  const adapter =
    options.adapter ??
    createHttpAdapter({
      ...(lookup === undefined ? {} : { lookup }),
      ...(proxies === undefined ? {} : { environment: proxies }),
    });
  return adapter.open(configured.config as never, deps, new AbortController().signal);
}

/** How a test calls. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly explain?: boolean;
  readonly validateOnly?: boolean;
  readonly traceparent?: string;
  /** Milliseconds since the epoch. */
  readonly deadlineMs?: number;
}

/** A call's events as they come. */
export function invoke(tool: Upstream, args: JsonObject = {}, options: CallOptions = {}): AsyncIterable<UpstreamEvent> {
  const toolCall: ToolCall = {
    tool: "order_status",
    arguments: args,
    validateOnly: options.validateOnly ?? false,
    maxLength: undefined,
  };
  return tool.invoke(toolCall, contextFor(options));
}

/** Facts of a call that never ends by itself. */
function contextFor(options: CallOptions): CallContext {
  return {
    callId: "0190f3a0-0000-7000-8000-000000000000",
    principal: ANONYMOUS,
    signal: options.signal ?? new AbortController().signal,
    deadlineMs: options.deadlineMs ?? Number.MAX_SAFE_INTEGER,
    attempt: 1,
    explain: options.explain ?? false,
    sessionId: undefined,
    turnId: undefined,
    taskId: undefined,
    toolCallId: undefined,
    traceparent: options.traceparent,
    logger: silentLogger,
  };
}

/** What a call came to. */
export interface Outcome {
  readonly deltas: readonly string[];
  /** The last of the exchanges. */
  readonly exchange: UpstreamExchange | undefined;
  readonly exchanges: readonly UpstreamExchange[];
  /** Absent where the call failed. */
  readonly result: UpstreamResult | undefined;
  readonly error: GatewayError | undefined;
}

/** Calls and reads everything. An error that is no GatewayError fails the test. */
export async function call(tool: Upstream, args: JsonObject = {}, options: CallOptions = {}): Promise<Outcome> {
  const deltas: string[] = [];
  const exchanges: UpstreamExchange[] = [];
  let result: UpstreamResult | undefined;
  try {
    for await (const event of invoke(tool, args, options)) {
      if (result !== undefined) throw new Error("an event after the result");
      if (event.type === "upstream-delta") deltas.push(event.text);
      else if (event.type === "exchange") exchanges.push(event.exchange);
      else if (event.type === "upstream-result") result = event.result;
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { deltas, exchange: exchanges.at(-1), exchanges, result: undefined, error };
  }
  return { deltas, exchange: exchanges.at(-1), exchanges, result, error: undefined };
}

/** Resolves when a socket is closed. */
export async function closed(socket: Socket | undefined): Promise<void> {
  if (socket === undefined) throw new Error("no connection was made");
  if (!socket.closed) await new Promise<void>((resolve) => socket.once("close", () => resolve()));
}

/** Calls a tool once and gives what its upstream saw. `endpoint` is its path and query alone. */
export async function sent(
  options: PathOptions,
  args: JsonObject,
  callOptions: CallOptions = {},
): Promise<SentOutcome> {
  await using upstream = await startJsonUpstream();
  const keys = { ...options.keys, endpoint: upstream.origin + options.keys.endpoint };
  await using tool = await openTool({ ...options, keys });
  const outcome = await call(tool, args, callOptions);
  return { ...outcome, requests: upstream.requests, request: upstream.requests[0], origin: upstream.origin };
}

/** What {@link sent} gives. */
export interface SentOutcome extends Outcome {
  readonly requests: readonly SeenRequest[];
  /** The first of them. */
  readonly request: SeenRequest | undefined;
  readonly origin: string;
}

/** What {@link sent} takes. */
export type PathOptions = ToolOptions & { readonly keys: { readonly endpoint: string } };
