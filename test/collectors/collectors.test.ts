import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startEchoUpstream } from "../e2e/echo-upstream.ts";
import { type OpenGateway, openGateway } from "../e2e/effects-gateway.ts";
import { retryUntil } from "../e2e/gateway-client.ts";

/** A port that is free at this moment. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

interface Program extends AsyncDisposable {
  /** All it has said. */
  output(): string;
}

function startProgram(command: string, args: readonly string[]): Program {
  const child: ChildProcess = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const note = (chunk: Buffer): void => {
    said += chunk.toString("utf8");
  };
  child.stdout?.on("data", note);
  child.stderr?.on("data", note);
  const ended = once(child, "exit").catch(() => undefined);
  return {
    output: () => said,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

interface Watched extends AsyncDisposable {
  readonly folder: string;
  readonly running: AsyncDisposableStack;
  open(settings: Readonly<Record<string, unknown>>): Promise<OpenGateway>;
}

async function watched(): Promise<Watched> {
  const running = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "toolgate-collectors-"));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  const upstream = running.use(await startEchoUpstream());
  const endpoint = `http://127.0.0.1:${upstream.port}/echo/watched`;
  const text = { name: "watched", description: "用于检查采集 a tool that is watched", type: "http", endpoint };
  return {
    folder,
    running,
    open: async (settings) =>
      running.use(await openGateway({ folder, files: { "tools/watched.yaml": JSON.stringify(text) }, settings })),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

test("Prometheus reads `/metrics` and answers questions about calls", async () => {
  await using it = await watched();
  const gateway = await it.open({ metrics: { prometheus: true } });
  for (let i = 0; i < 3; i++) await gateway.client.call("watched");
  const config = join(it.folder, "prometheus.yaml");
  const scrape = {
    job_name: "toolgate",
    scrape_interval: "1s",
    static_configs: [{ targets: [`127.0.0.1:${gateway.port}`] }],
  };
  await writeFile(config, JSON.stringify({ scrape_configs: [scrape] }));
  const port = await freePort();
  const flags = [`--config.file=${config}`, `--storage.tsdb.path=${join(it.folder, "tsdb")}`];
  it.running.use(startProgram("prometheus", [...flags, `--web.listen-address=127.0.0.1:${port}`]));
  const ask = async (query: string): Promise<unknown> => {
    const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`;
    // It refuses while it starts, first to connect and then to answer.
    const answer: unknown = await fetch(url).then(
      (response) => (response.ok ? response.json() : undefined),
      () => undefined,
    );
    const { data } = (answer ?? {}) as {
      readonly data?: { readonly result?: readonly { readonly value: unknown[] }[] };
    };
    return data?.result?.[0]?.value[1];
  };
  /** Resolves with the answer once it is the one that is waited for. */
  const until = async (query: string, value: string): Promise<unknown> => {
    let seen: unknown;
    const look = async (): Promise<unknown> => {
      seen = await ask(query);
      return seen;
    };
    await retryUntil(look, (answer) => answer === value, 60_000);
    return seen;
  };
  expect(await until('up{job="toolgate"}', "1")).toBe("1");
  expect(await until('sum(toolgate_calls_total{gen_ai_tool_name="watched",toolgate_outcome="ok"})', "3")).toBe("3");
  expect(await until('sum(toolgate_call_duration_seconds_count{gen_ai_tool_name="watched"})', "3")).toBe("3");
  expect(await until('toolgate_tools{toolgate_state="ready"}', "1")).toBe("1");
  expect(
    await until("histogram_quantile(0.5, sum by (le) (toolgate_call_duration_seconds_bucket)) > bool 0", "1"),
  ).toBe("1");
});
