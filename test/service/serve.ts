import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { systemClock } from "../../src/core/clock.ts";
import { addressText } from "../../src/core/listen-address.ts";
import { type LogFields, type Logger, silentLogger } from "../../src/core/logger.ts";
import type { LedgerStore } from "../../src/core/store.ts";
import { createFrontDoor, type FrontDoor, type FrontDoorOptions } from "../../src/service/front-door.ts";
import { KeptCalls, type ResumeLimits } from "../../src/service/kept-calls.ts";
import type { Keepalive } from "../../src/service/sessions.ts";
import { createMemoryLedger } from "../../src/stores/memory-ledger.ts";
import { createSpillFiles } from "../../src/stores/spill-files.ts";
import { createFakeRegistry, type FakeRegistry } from "./fake-registry.ts";

/** How long a test waits for what comes in a moment, unless the machine is very busy. */
export const PATIENT = { timeout: 30_000 } as const;

/** Of which a test changes what it is about. */
export const KEEPALIVE: Keepalive = { intervalMs: 20_000, timeoutMs: 10_000, connectionAgeGraceMs: 3_600_000 };

/** A front door that is open. */
export interface Served extends AsyncDisposable {
  readonly door: FrontDoor;
  readonly registry: FakeRegistry;
  readonly host: string;
  readonly port: number;
  /** `http://127.0.0.1:PORT`, with a certificate `https://127.0.0.1:PORT`, or `unix:PATH`. */
  readonly url: string;
}

/** Where calls are kept in memory, with room for a few. */
export function createKept(resume: Partial<ResumeLimits> = {}, store?: LedgerStore): KeptCalls {
  const limits = { windowMs: 60_000, callMemoryBytes: 131_072, callDiskBytes: 1_048_576, calls: 10 };
  const clock = systemClock;
  return new KeptCalls({
    store: store ?? createMemoryLedger({ clock, retentionMs: 3_600_000, maxEntries: 1_000, maxBytes: 1_000_000 }),
    spill: createSpillFiles(join(tmpdir(), `toolgate-spill-${randomUUID()}`)),
    clock,
    logger: silentLogger,
    resume: { ...limits, ...resume },
  });
}

/** A front door for a free port of loopback that drains for 200 ms unless told otherwise. */
export function createDoor(registry: FakeRegistry, options: Partial<FrontDoorOptions>): FrontDoor {
  return createFrontDoor({
    registry,
    kept: createKept(),
    clock: systemClock,
    logger: silentLogger,
    version: "1.2.3",
    startedAtMs: Date.now(),
    listen: { host: "127.0.0.1", port: 0 },
    limits: { requestBytes: 4 * 1024 * 1024, deadlineMs: 3_600_000, concurrentStreams: 1000 },
    keepalive: KEEPALIVE,
    drainMs: 200,
    reflection: true,
    ...options,
  });
}

/** Opens a front door over a fake registry with the tool `echo`. */
export async function serve(options: Partial<FrontDoorOptions> = {}): Promise<Served> {
  const registry = createFakeRegistry();
  registry.add({ name: "echo" });
  const door = createDoor(registry, options);
  const address = await door.listen();
  door.setReady(true);
  const { host, port } = "path" in address ? { host: "", port: 0 } : address;
  const scheme = options.tls === undefined ? "http" : "https";
  const url = "path" in address ? addressText(address) : `${scheme}://${host}:${port}`;
  return { door, registry, host, port, url, [Symbol.asyncDispose]: () => door.stop() };
}

interface GrpcClients {
  readonly tools: Client<typeof ToolGatewayService>;
  readonly operator: Client<typeof OperatorService>;
}

/** Clients over gRPC. */
export function grpcClients(url: string): GrpcClients {
  const transport = createGrpcTransport({ baseUrl: url });
  return { tools: createClient(ToolGatewayService, transport), operator: createClient(OperatorService, transport) };
}

/** A logger that keeps its lines. */
export function recordingLogger(): Logger & {
  readonly lines: { readonly message: string; readonly fields: LogFields }[];
} {
  const lines: { message: string; fields: LogFields }[] = [];
  const at =
    (base: LogFields) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push({ message, fields: { ...base, ...fields } });
  const logger = (base: LogFields): Logger => ({
    debug: at(base),
    info: at(base),
    warn: at(base),
    error: at(base),
    child: (fields) => logger({ ...base, ...fields }),
  });
  return { ...logger({}), lines };
}
