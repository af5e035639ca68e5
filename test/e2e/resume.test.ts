import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CallEvent } from "../../clients/typescript/src/call-stream.ts";
import { createToolgateClient } from "../../clients/typescript/src/client.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { createRandom } from "../core/random.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";

const LINES = 300;
const SEEDS = [1, 2, 3, 4, 5, 6];

const running = new AsyncDisposableStack();
let gateway: OpenGateway;
/** Requests the upstream got, by path. */
const requests = new Map<string, number>();

/** What the upstream sends for a path. */
function linesOf(path: string): string[] {
  return Array.from({ length: LINES }, (_, i) => `${path} 行 ${i} ${"·".repeat(i % 97)}\n`);
}

/** Sends its lines in small pieces, now and then with a pause. */
async function startUpstream(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((request, response) => {
    const path = (request.url ?? "").slice(1);
    requests.set(path, (requests.get(path) ?? 0) + 1);
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
    void (async () => {
      for (const [i, line] of linesOf(path).entries()) {
        response.write(line);
        if (i % 10 === 0) await delay(4);
      }
      response.end();
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

beforeAll(async () => {
  const upstream = running.use(await startUpstream());
  const folder = running.use(await temporaryFolder()).path;
  const declaration = {
    name: "log_lines",
    description: "Read the lines of a log as they come",
    type: "http",
    endpoint: `http://127.0.0.1:${upstream.port}/{log}`,
    params: [{ name: "log", type: "string", required: true }],
    delivery: "incremental",
    result: { format: "text" },
  };
  const files = { "tools/log_lines.yaml": JSON.stringify(declaration) };
  gateway = running.use(await openGateway({ folder, files, settings: { resume: { call_memory: "4KiB" } } }));
});

afterAll(async () => {
  await running.disposeAsync();
});

async function textOf(events: AsyncIterable<CallEvent>): Promise<{ text: string; types: Set<string> }> {
  let text = "";
  const types = new Set<string>();
  for await (const event of events) {
    types.add(event.type);
    if (event.type === "output") text += event.text;
    // All of it, where the call had ended before the caller heard that it began.
    if (event.type === "completed") text += event.outcome.text();
  }
  return { text, types };
}

test.each(SEEDS)(
  "connections that are cut at random bytes (seed %i) lose and repeat no piece of a stream",
  {
    timeout: 180_000,
  },
  async (seed) => {
    const random = createRandom(seed);
    // The first cuts come early, in the middle of what every connection begins with. Later ones come ever later: a
    // caller who heard of the call only after its end gets all of it in one message, which has to pass at last.
    let connections = 0;
    const next = (): number => {
      connections += 1;
      return 1 + Math.floor(random() * (connections <= 3 ? 300 : 8_000 * 2 ** Math.floor(connections / 4)));
    };
    await using proxy = await startCuttingProxy(gateway.port, next);
    using transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${proxy.port}` });
    const client = createToolgateClient(transport);
    const log = `seed-${seed}`;
    const options = { requestId: `key-${seed}`, resumeWindowMs: 30_000 };
    const { text, types } = await textOf(client.callStream("log_lines", { log }, options));
    expect(text).toBe(linesOf(log).join(""));
    expect([...types].filter((type) => type !== "output")).toEqual(["started", "completed"]);
    expect(proxy.cuts).toBeGreaterThan(3);
    expect(requests.get(log)).toBe(1);
  },
);

test("without a window a cut is an error, as ever, and the upstream is left", async () => {
  await using proxy = await startCuttingProxy(gateway.port, () => 3_000);
  using transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${proxy.port}` });
  const events = createToolgateClient(transport).callStream("log_lines", { log: "plain" });
  await expect(textOf(events)).rejects.toMatchObject({ reason: "GATEWAY_CONNECTION_LOST", effect: "unknown" });
});

test("a gateway that stays away longer than the window ends the stream with an error", async () => {
  let connections = 0;
  await using proxy = await startCuttingProxy(gateway.port, () => (connections++ === 0 ? 3_000 : 0));
  using transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${proxy.port}` });
  const events = createToolgateClient(transport).callStream("log_lines", { log: "gone" }, { resumeWindowMs: 500 });
  await expect(textOf(events)).rejects.toMatchObject({ reason: "GATEWAY_CONNECTION_LOST", effect: "unknown" });
});

test("a caller that cancels ends a stream that could be resumed", async () => {
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const client = createToolgateClient(transport);
  const controller = new AbortController();
  const events = client.callStream(
    "log_lines",
    { log: "cancelled" },
    { resumeWindowMs: 30_000, signal: controller.signal },
  );
  const reading = textOf(events);
  setTimeout(() => controller.abort(), 50);
  await expect(reading).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
});
