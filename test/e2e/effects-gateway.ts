import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type GatewayConfig, parseGatewayConfig } from "../../src/config/gateway-config.ts";
import type { Reconfigured } from "../../src/config/live-settings.ts";
import type { Clock } from "../../src/core/clock.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { createGateway } from "../../src/gateway.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { createGatewayClient, type GatewayClient } from "./gateway-client.ts";

/** What to make a gateway from. */
export interface OpenGatewayOptions {
  /** An empty folder, which gets `files`; `listen` is a free port of 127.0.0.1 where `settings` says nothing else. */
  readonly folder: string;
  /** What `gateway.yaml` says. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Texts by path in the folder. */
  readonly files?: Readonly<Record<string, string>>;
  /** What `secret_ref` finds. */
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly injectFaults?: boolean;
}

/** A whole gateway in this process, with a client. */
export interface OpenGateway extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly folder: string;
  readonly client: GatewayClient;
  /** Takes over other settings; the port stays. */
  reconfigure(settings: Readonly<Record<string, unknown>>): Promise<Reconfigured>;
  stop(): Promise<void>;
}

/** A folder that goes away with all it holds. */
export async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "toolgate-effects-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Starts a gateway in this process, which is many times quicker than in one of its own. */
export async function openGateway(options: OpenGatewayOptions): Promise<OpenGateway> {
  const { folder, files = {}, settings = {}, env = {} } = options;
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const gateway = await createGateway({
    config: configOf(settings, folder),
    secrets: createSecrets(env),
    logger: silentLogger,
    injectFaults: options.injectFaults === true,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  const port = Number(new URL(gateway.url).port);
  const client = createGatewayClient(port);
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    folder,
    client,
    reconfigure: (next) => gateway.reconfigure(configOf(next, folder)),
    stop: () => gateway.stop(),
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await gateway.stop();
    },
  };
}

function configOf(settings: Readonly<Record<string, unknown>>, folder: string): GatewayConfig {
  const text = JSON.stringify({ listen: "127.0.0.1:0", ...settings });
  const parsed = parseGatewayConfig(text, { file: "gateway.yaml", folder });
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join("\n"));
  return parsed.config;
}
