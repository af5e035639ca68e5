import { once } from "node:events";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { REPOSITORY, type SpawnedProcess, spawnScript } from "./spawned.ts";

const UPSTREAM_PORT = "7434";

/** A copy of `examples/` in a folder of its own, for ports of its own. */
export interface ExamplesCopy extends AsyncDisposable {
  /** Holds `tools/`, `scripts/`, `state/`, `gateway.yaml` and `registered.yaml`. */
  readonly folder: string;
  readonly upstreamPort: number;
}

/** The examples as a user runs them: demo upstream and gateway in one process. */
export interface ExamplesProcess extends SpawnedProcess {
  /** Port of the gateway. */
  readonly port: number;
}

/** Copies the example tools and makes them point at a free port. Disposing removes the copy. */
export async function copyExamples(): Promise<ExamplesCopy> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-examples-"));
  const upstreamPort = await freePort();
  const tools = join(folder, "tools");
  await cp(join(REPOSITORY, "examples/tools"), tools, { recursive: true });
  await cp(join(REPOSITORY, "examples/scripts"), join(folder, "scripts"), { recursive: true });
  for (const name of await readdir(tools)) {
    const text = await readFile(join(tools, name), "utf8");
    await writeFile(join(tools, name), text.replaceAll(UPSTREAM_PORT, String(upstreamPort)));
  }
  const registered = await readFile(join(REPOSITORY, "examples/registered.yaml"), "utf8");
  await writeFile(join(folder, "registered.yaml"), registered.replaceAll(UPSTREAM_PORT, String(upstreamPort)));
  await writeFile(
    join(folder, "gateway.yaml"),
    "listen: 127.0.0.1:0\ntools: { folder: tools }\nstate: { folder: state }\n",
  );
  return {
    folder,
    upstreamPort,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Runs `examples/start.ts` on a copy and waits until it says that it is ready. Disposing kills it. */
export async function startExamples(
  copy: ExamplesCopy,
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<ExamplesProcess> {
  const flags = ["--config", join(copy.folder, "gateway.yaml"), "--upstream-port", String(copy.upstreamPort)];
  const child = spawnScript(["examples/start.ts", ...flags], {
    ORDER_API_TOKEN: undefined,
    WEATHER_API_KEY: undefined,
    ...env,
  });
  const [, port] = await child.waitFor(/Gateway +http:\/\/127\.0\.0\.1:(\d+)[^]*Ctrl-C/);
  return { ...child, port: Number(port) };
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  return address.port;
}
