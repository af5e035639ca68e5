import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, LookupFunction, Socket } from "node:net";
import {
  create,
  createFileRegistry,
  fromBinary,
  fromJson,
  type JsonObject as ProtoJson,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createGrpcAdapter } from "../../../src/adapters/grpc/index.ts";
import type { AdapterSettings, Configured, Upstream } from "../../../src/core/adapter.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { DeclaredTool } from "../../../src/core/tool.ts";
import { createEnvironmentSecrets } from "../../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../../src/secrets/secret-memory.ts";

/** The folder that relative paths of declarations begin at: this one. */
export const FOLDER = import.meta.dirname;

/** Descriptors of orders.proto; made by `buf build orders.proto -o orders.binpb`. */
export const DESCRIPTORS = fromBinary(FileDescriptorSetSchema, readFileSync(`${FOLDER}/orders.binpb`));

const REGISTRY = createFileRegistry(DESCRIPTORS);

/** A message of shop.v1 as bytes. */
export function message(name: string, json: ProtoJson): Uint8Array {
  const desc = REGISTRY.getMessage(name);
  if (desc === undefined) throw new Error(`there is no message ${name}`);
  return toBinary(desc, fromJson(desc, json, { registry: REGISTRY }));
}

/** An order as bytes. */
export function order(json: ProtoJson = { orderId: "A1" }): Uint8Array {
  return message("shop.v1.Order", json);
}

/** A message as gRPC frames it. */
export function frame(bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** What a raw server got. */
export interface RawCall {
  readonly stream: ServerHttp2Stream;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** What the request holds, without its frame. */
  readonly request: Buffer;
}

/** A server that speaks gRPC by hand, so that it can break every rule. */
export interface RawServer extends AsyncDisposable {
  readonly address: string;
  readonly calls: readonly RawCall[];
  /** Connections, closed ones too. */
  readonly sockets: readonly Socket[];
  readonly sessions: readonly ServerHttp2Session[];
  /** The next call that comes, its request read. */
  nextCall(): Promise<RawCall>;
}

/** Starts one that answers each call once its request is there. */
export async function startRaw(
  answer: (call: RawCall) => void,
  server: Http2Server = createServer(),
): Promise<RawServer> {
  const calls: RawCall[] = [];
  const sockets: Socket[] = [];
  const sessions: ServerHttp2Session[] = [];
  const waiting: ((call: RawCall) => void)[] = [];
  server.on("connection", (socket: Socket) => sockets.push(socket.on("error", () => undefined)));
  server.on("session", (session) => sessions.push(session.on("error", () => undefined)));
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("end", () => {
      const call = { stream, headers: headers as RawCall["headers"], request: Buffer.concat(pieces).subarray(5) };
      calls.push(call);
      for (const resolve of waiting.splice(0)) resolve(call);
      answer(call);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    calls,
    sockets,
    sessions,
    nextCall: () => new Promise((resolve) => waiting.push(resolve)),
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers with messages and a status. */
export function reply(
  { stream }: RawCall,
  messages: readonly Uint8Array[],
  trailers: Readonly<Record<string, string>> = { "grpc-status": "0" },
): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers({ ...trailers }));
  stream.end(Buffer.concat(messages.map(frame)));
}

/** Answers with a status and nothing else. */
export function refuse({ stream }: RawCall, fields: Readonly<Record<string, string>>): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc", ...fields }, { endStream: true });
}

/** What a test declares. */
export interface ToolOptions {
  /** The block `grpc`; its method is GetOrder and its descriptor orders.binpb, unless it says otherwise. */
  readonly grpc: JsonObject;
  /** Properties of the input schema. Default: `order_id`. */
  readonly params?: JsonObject;
  readonly name?: string;
  readonly delivery?: DeclaredTool["delivery"];
  readonly hints?: DeclaredTool["hints"];
  readonly timeouts?: Partial<AdapterSettings["timeouts"]>;
  readonly maxResponseBytes?: number;
  readonly pool?: AdapterSettings["pool"];
  readonly reach?: AdapterSettings["reach"];
  readonly egress?: AdapterSettings["egress"];
  readonly environment?: Record<string, string | undefined>;
  readonly clock?: Clock;
  readonly changed?: () => void;
  readonly lookup?: LookupFunction;
  /** Variables that proxies are taken from. */
  readonly proxies?: Record<string, string>;
  /** Absolute; default {@link FOLDER}. */
  readonly folder?: string;
  /** One that other tools use too. */
  readonly adapter?: ReturnType<typeof createGrpcAdapter>;
}

/** Compiles a declaration. */
export function configure(options: ToolOptions): Configured<unknown> {
  const properties = options.params ?? { order_id: { type: "string" } };
  const tool: DeclaredTool = {
    name: options.name ?? "get_order",
    title: "",
    description: "Looks an order up",
    kind: "grpc",
    inputSchema: { type: "object", properties, additionalProperties: false },
    outputSchema: undefined,
    hints: options.hints ?? {},
    labels: {},
    delivery: options.delivery ?? "conclusive",
    enabled: true,
  };
  const standard = {
    method: "shop.v1.OrderService/GetOrder",
    ...(options.grpc["reflection"] === undefined ? { descriptor: "orders.binpb" } : {}),
  };
  return adapterOf(options).configure({ grpc: { ...standard, ...options.grpc } }, tool, {
    timeouts: { connectMs: 60_000, readMs: 60_000, idleMs: 60_000, ...options.timeouts },
    maxResponseBytes: options.maxResponseBytes ?? 1024 * 1024,
    format: "auto",
    pool: options.pool ?? {},
    reach: options.reach ?? "all",
    ...(options.egress === undefined ? {} : { egress: options.egress }),
  });
}

function adapterOf({
  adapter,
  lookup,
  proxies = {},
  folder = FOLDER,
}: ToolOptions): ReturnType<typeof createGrpcAdapter> {
  return adapter ?? createGrpcAdapter({ environment: proxies, folder, ...(lookup === undefined ? {} : { lookup }) });
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
  return adapterOf(options).open(configured.config as never, deps, new AbortController().signal);
}

/** A FileDescriptorSet of some of the files. */
export function descriptorsOf(keep: (name: string) => boolean): Uint8Array {
  const file = DESCRIPTORS.file.filter(({ name }) => keep(name));
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
}
