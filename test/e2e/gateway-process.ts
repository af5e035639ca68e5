import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SpawnedProcess, spawnScript } from "./spawned.ts";

/** What to start. */
export interface GatewayProcessOptions {
  /** Files of the watched folder by name. */
  readonly tools: Readonly<Record<string, string>>;
  /** More lines of `gateway.yaml`. */
  readonly config?: string;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A gateway in a process of its own, on a free port, with folders of its own. */
export interface GatewayProcess extends SpawnedProcess {
  readonly port: number;
  /** Holds `tools/`, `state/` and `gateway.yaml`. */
  readonly folder: string;
}

/** Starts `toolgate serve` over a folder that is there already, as after a crash. Disposing kills it. */
export async function startAgain(folder: string): Promise<SpawnedProcess & { readonly port: number }> {
  const child = spawnScript(["src/main.ts", "serve", "--config", join(folder, "gateway.yaml")], {});
  const [, port] = await child.waitFor(/127\.0\.0\.1:(\d+)/);
  return { ...child, port: Number(port) };
}

/** Starts `toolgate serve` and waits until it listens. Disposing kills it and removes its folder. */
export async function startGateway(options: GatewayProcessOptions): Promise<GatewayProcess> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-e2e-"));
  await mkdir(join(folder, "tools"));
  for (const [name, text] of Object.entries(options.tools)) await writeFile(join(folder, "tools", name), text);
  const config = join(folder, "gateway.yaml");
  const settings = "listen: 127.0.0.1:0\ntools: { folder: tools }\nstate: { folder: state }\n";
  await writeFile(config, settings + (options.config ?? ""));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const child = spawnScript(["src/main.ts", "serve", "--config", config], options.env ?? {});
  const [, port] = await child.waitFor(/127\.0\.0\.1:(\d+)/).catch(async (error: unknown) => {
    await removeFolder();
    throw error;
  });
  return {
    ...child,
    port: Number(port),
    folder,
    async [Symbol.asyncDispose]() {
      await child[Symbol.asyncDispose]();
      await removeFolder();
    },
  };
}
