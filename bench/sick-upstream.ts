import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ToolGatewayService } from "../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { parseGatewayConfig } from "../src/config/gateway-config.ts";
import { silentLogger } from "../src/core/logger.ts";
import { createGateway } from "../src/gateway.ts";
import { createSecrets } from "../src/secrets/secrets.ts";
import { interleaved, median, percentile } from "./measure.ts";
import { type Goal, goalsTable } from "./report.ts";

const USAGE = `npm run bench:sick -- [--rounds N] [--calls N]
  --rounds N  interleaved rounds of the slow tail (default 5)
  --calls N   calls of each subject in a round (default 400)
What hedges and circuit breakers make of an upstream with a slow tail, and of one that begins to take 30 s. Nothing of it
passes or fails: what travels are the ratios, in the table at the end. About 90 seconds.`;

const FAST_MS = 50;
const SLOW_MS = 1_500;
const SLOW_SHARE = 0.05;
const CALLERS = 8;

/** An upstream that is well, and one that is not. */
const WELL_MS = 200;
const SICK_MS = 30_000;

/** After how many milliseconds the upstream answers. */
type Behaviour = () => number;

interface Bed extends AsyncDisposable {
  readonly client: Client<typeof ToolGatewayService>;
  /** Requests the upstream had, by path. */
  readonly requests: ReadonlyMap<string, number>;
}

/** A gateway with a tool for each name, all of one upstream in this process. */
async function openBed(tools: Readonly<Record<string, object>>, behaviour: Behaviour): Promise<Bed> {
  const stack = new AsyncDisposableStack();
  const requests = new Map<string, number>();
  const upstream = createServer((request, response) => {
    const path = request.url ?? "";
    requests.set(path, (requests.get(path) ?? 0) + 1);
    const answer = (): unknown => response.setHeader("content-type", "application/json").end('{"ok":true}');
    const timer = setTimeout(answer, behaviour());
    response.once("close", () => clearTimeout(timer));
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  stack.defer(async () => {
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
  });
  const address = upstream.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const folder = await mkdtemp(join(tmpdir(), "toolgate-bench-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "tools"));
  for (const [name, keys] of Object.entries(tools)) {
    const declaration = {
      name,
      description: name,
      type: "http",
      endpoint: `http://127.0.0.1:${port}/${name}`,
      ...keys,
    };
    await writeFile(join(folder, "tools", `${name}.yaml`), JSON.stringify(declaration));
  }
  const parsed = parseGatewayConfig(JSON.stringify({ listen: "127.0.0.1:0" }), { file: "gateway.yaml", folder });
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join("\n"));
  const gateway = stack.use(
    await createGateway({ config: parsed.config, secrets: createSecrets({}), logger: silentLogger }),
  );
  const client = createClient(ToolGatewayService, createGrpcTransport({ baseUrl: gateway.url }));
  return { client, requests, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Random numbers that are the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function slowTail(rounds: number, calls: number): Promise<readonly Goal[]> {
  const tools = { plain: {}, after_200ms: { hedge: { after: "200ms" } }, p92: { hedge: { after: "p92" } } };
  const random = seeded(7);
  await using bed = await openBed(tools, () => (random() < SLOW_SHARE ? SLOW_MS : FAST_MS));
  const { client, requests } = bed;
  const figures = new Map<string, { readonly p50: number[]; readonly p99: number[] }>();
  for (const name of Object.keys(tools)) figures.set(name, { p50: [], p99: [] });
  for (const name of interleaved(Object.keys(tools), rounds)) {
    const took: number[] = [];
    await Promise.all(
      Array.from({ length: CALLERS }, async () => {
        for (let i = 0; i < calls / CALLERS; i++) {
          const startedAt = performance.now();
          await client.call({ invocation: { name } });
          took.push(performance.now() - startedAt);
        }
      }),
    );
    figures.get(name)?.p50.push(percentile(took, 0.5) ?? Number.NaN);
    figures.get(name)?.p99.push(percentile(took, 0.99) ?? Number.NaN);
  }
  const made = rounds * Math.floor(calls / CALLERS) * CALLERS;
  const plain = median(figures.get("plain")?.p99 ?? []);
  console.log(`## Slow tail: ${FAST_MS} ms, ${SLOW_SHARE * 100} % take ${SLOW_MS} ms\n`);
  console.log("| hedge | p50 ms | p99 ms | p99 against plain | requests a call |\n| --- | --- | --- | --- | --- |");
  const goals: Goal[] = [];
  for (const [name, { p50, p99 }] of figures) {
    const share = (requests.get(`/${name}`) ?? 0) / made;
    const cells = [
      name,
      median(p50).toFixed(1),
      median(p99).toFixed(1),
      (median(p99) / plain).toFixed(2),
      share.toFixed(3),
    ];
    console.log(`| ${cells.join(" | ")} |`);
    if (name === "plain") continue;
    const what = `hedge ${name}, ${SLOW_SHARE * 100} % slow`;
    goals.push({
      what: `${what}: p99 against plain`,
      measured: (median(p99) / plain).toFixed(2),
      goal: "at most 0.50",
    });
    goals.push({ what: `${what}: upstream calls against plain`, measured: share.toFixed(3), goal: "below 1.10" });
  }
  return goals;
}

async function storm(): Promise<readonly Goal[]> {
  const timeout = { read: "1s" };
  const retry = { max_retries: 3, backoff: "fixed", initial_backoff: "200ms", budget: 1 };
  const tools = {
    naive: { timeout, retry, circuit_breaker: { enabled: false } },
    as_shipped: { timeout, retry: { max_retries: 3 } },
  };
  let sick = false;
  await using bed = await openBed(tools, () => (sick ? SICK_MS : WELL_MS));
  const over = new AbortController();
  const callers = Object.keys(tools).flatMap((name) =>
    Array.from({ length: CALLERS }, async () => {
      while (!over.signal.aborted) {
        await bed.client.call({ invocation: { name } }, { timeoutMs: 10_000 }).catch(() => undefined);
        await delay(100);
      }
    }),
  );
  const counted = async (ms: number): Promise<ReadonlyMap<string, number>> => {
    const before = new Map(bed.requests);
    await delay(ms);
    return new Map([...bed.requests].map(([path, count]) => [path, count - (before.get(path) ?? 0)]));
  };
  const healthy = await counted(3_000);
  sick = true;
  const rest = await counted(3_000);
  const later = await counted(3_000);
  over.abort();
  await Promise.all(callers);
  console.log(`\n## Storm: an upstream of ${WELL_MS} ms takes ${SICK_MS / 1_000} s; ${CALLERS} callers of each tool\n`);
  console.log(
    "| retries | requests in 3 s before | in the 3 s after | in the 3 s after that |\n| --- | --- | --- | --- |",
  );
  for (const name of Object.keys(tools)) {
    console.log(`| ${[name, ...[healthy, rest, later].map((counts) => counts.get(`/${name}`) ?? 0)].join(" | ")} |`);
  }
  return Object.keys(tools).map((name) => {
    const shares = [rest, later].map((counts) => (requestsOf(counts, name) / requestsOf(healthy, name)).toFixed(2));
    const goal = name === "naive" ? "" : "falls";
    return {
      what: `storm, ${name}: upstream calls in 3 s, and the 3 s after, against before`,
      measured: shares.join(", "),
      goal,
    };
  });
}

function requestsOf(counts: ReadonlyMap<string, number>, name: string): number {
  return counts.get(`/${name}`) ?? 0;
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    calls: { type: "string", default: "400" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(USAGE);
} else {
  const goals = [...(await slowTail(Number(values.rounds), Number(values.calls))), ...(await storm())];
  console.log(`\n${goalsTable(goals)}`);
}
