import { openSync, writeSync } from "node:fs";
import { devNull } from "node:os";
import { create } from "@bufbuild/protobuf";
import { ListRequestSchema, ListResponseSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { createAdapters } from "../../src/adapters/index.ts";
import { type GatewayConfig, parseGatewayConfig } from "../../src/config/gateway-config.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Logger } from "../../src/core/logger.ts";
import { ANONYMOUS } from "../../src/core/principal.ts";
import { createGateway } from "../../src/gateway.ts";
import { providerSchema } from "../../src/models/provider-schema.ts";
import { createPinoLogger } from "../../src/observability/pino-logger.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { createDeclarationGrammar } from "../../src/registry/declaration-grammar.ts";
import { parseDeclaration } from "../../src/registry/parse-declaration.ts";
import { createToolRegistry, type Registry } from "../../src/registry/tool-registry.ts";
import { createEnvironmentSecrets } from "../../src/secrets/environment-secrets.ts";
import { createRedactor } from "../../src/secrets/redactor.ts";
import { SecretMemory } from "../../src/secrets/secret-memory.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { listTools } from "../../src/service/list-tools.ts";
import type { Rpc } from "../../src/service/rpc.ts";
import { createMemoryRegistrations } from "../../src/stores/memory-registrations.ts";
import { messageBytes } from "../../src/wire/message-bytes.ts";
import { createToolCodec } from "../../src/wire/tool-codec.ts";
import { Meter } from "../scale/meter.ts";
import { PAGE_SIZE, PAGES, type ScaleReply, type ScaleStep } from "../scale/steps.ts";

// A gateway that its parent measures step by step: scale.ts FOLDER. The parent sends a step; the answer is what the
// process used since the last one.

const [folder = ""] = process.argv.slice(2);
const meter = new Meter();
let port: number | undefined;

function readConfig(): GatewayConfig {
  const outcome = parseGatewayConfig(`listen: 127.0.0.1:0\nstate: { folder: state-${process.pid} }\n`, {
    file: "gateway.yaml",
    folder,
  });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.config;
}

/** Every line is made and written, as in a gateway whose log is a file. */
function createLogger(): Logger {
  const log = openSync(devNull, "w");
  return createPinoLogger({
    level: "info",
    destination: { write: (line) => void writeSync(log, line) },
    redactor: createRedactor(new SecretMemory()),
  });
}

/** The gateway's registry without anything around it. */
function registryOf(config: GatewayConfig): Registry {
  const checker = createSchemaChecker({ maxCompiled: 1 });
  const grammar = createDeclarationGrammar({
    adapters: new Map(
      createAdapters({ environment: {}, folder: "/", shell: false }).map((adapter) => [adapter.kind, adapter]),
    ),
    steps: [],
    schemaProblem: (schema) => checker.problem(schema),
  });
  const defaults = { maxResponseBytes: config.limits.responseBytes };
  return createToolRegistry({
    clock: systemClock,
    logger: createLogger(),
    secrets: createEnvironmentSecrets({}, new SecretMemory()),
    tools: config.tools,
    store: createMemoryRegistrations(),
    parse: (text, options) => parseDeclaration(text, { ...options, grammar, defaults, origins: config.origins }),
    compose: () => {
      throw new Error("this registry's tools are listed and never called");
    },
  });
}

/** First pages of a List, as bytes; the first is made before it counts. */
async function pages(): Promise<void> {
  await using registry = registryOf(readConfig());
  await registry.start(new AbortController().signal);
  const rpc: Rpc = {
    method: "toolgate.v1.ToolGatewayService/List",
    headers: new Headers(),
    principal: ANONYMOUS,
    signal: new AbortController().signal,
    lost: false,
    deadlineMs: undefined,
    binary: true,
    accept: () => undefined,
    abort: () => undefined,
    endWithGateway: () => undefined,
  };
  const tools = createToolCodec(providerSchema);
  const page = (): Uint8Array =>
    messageBytes(
      ListResponseSchema,
      listTools(create(ListRequestSchema, { pageSize: PAGE_SIZE }), rpc, { registry, tools }),
    );
  for (let n = 0; n < PAGES; n++) page();
  meter.quiet();
  meter.read();
  for (let n = 0; n < PAGES; n++) page();
  reply();
}

async function take(step: ScaleStep): Promise<void> {
  if (step === "pages") return pages();
  if (step === "quiet") meter.quiet();
  if (step === "load") {
    meter.read();
    const gateway = await createGateway({
      config: readConfig(),
      secrets: createSecrets(process.env),
      logger: createLogger(),
    });
    port = Number(new URL(gateway.url).port);
  }
  reply();
}

function reply(): void {
  const answer: ScaleReply = { usage: meter.read(), port };
  process.send?.(answer);
}

process.on("disconnect", () => process.exit(0));
process.on("message", (step: ScaleStep) => void take(step));
