import { parseArgs } from "node:util";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ToolGatewayService } from "../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { interleaved, type LoadPlan, type LoadResult, median } from "./measure.ts";
import { type LoadProcess, type ServerProcess, startLoad, startServer } from "./processes.ts";

const USAGE = `npm run bench:limits -- [options]
  --rounds N    interleaved rounds (default 5)
  --seconds S   measured time of each subject in a round (default 3)
  --only NAME   bulkhead or adaptive
Bulkhead: another tool while an upstream stands still at its limit of 10 and 200 callers wait for it, against the same
tool while nothing else happens. Adaptive: 100 callers of an upstream that gets slower the more it does at a time.
Nothing of it passes or fails: what travels are the ratios.`;

/** As in bench/run.ts: servers on one core, the load generator on the other. */
const SERVER_CORE = 0;
const LOAD_CORE = 1;

const STALLED = "bench_stalled";
/** What runs of the stalled tool by its limit, and what waits. */
const RUNNING = 10;
const WAITING = 200;
const POLL_MS = 20;
/** Callers of the upstream that gets slower. */
const CALLERS = 100;

interface Setting {
  readonly gateway: ServerProcess;
  readonly load: LoadProcess;
  readonly tools: Client<typeof ToolGatewayService>;
  readonly rounds: number;
  readonly measureMs: number;
}

/** Something that is measured in each round. */
interface Subject {
  readonly name: string;
  run(round: number): Promise<LoadResult>;
}

function portOf({ ports }: ServerProcess): number {
  const port = ports["h2"];
  if (port === undefined) throw new Error("the gateway has no port");
  return port;
}

function loadOn(
  { gateway, load, measureMs }: Setting,
  tool: string,
  inFlight: number,
  round: number,
): Promise<LoadResult> {
  const plan: LoadPlan = {
    kind: "unary",
    client: "grpc",
    port: portOf(gateway),
    pid: gateway.pid,
    target: tool,
    validateOnly: false,
    inFlight,
    // The first time also warms up the compiler of the runtime.
    warmUpMs: round === 0 ? measureMs : measureMs / 4,
    measureMs,
  };
  return load.run(plan);
}

/** Calls the stalled tool until its line is as long as it is to be; disposing cancels them all. */
async function stall({ tools }: Setting): Promise<AsyncDisposable> {
  const leave = new AbortController();
  const invocation = { name: STALLED, arguments: { case: "argumentsJson", value: '{"order_id":"SO1"}' } } as const;
  const calls = Array.from({ length: RUNNING + WAITING }, () =>
    tools.call({ invocation }, { signal: leave.signal }).catch((error: unknown) => {
      if (!leave.signal.aborted) throw error;
    }),
  );
  await untilState(tools, (reason) => reason.includes(`${WAITING} wait`));
  return {
    async [Symbol.asyncDispose]() {
      leave.abort();
      await Promise.all(calls);
      await untilState(tools, (reason) => reason === "");
    },
  };
}

async function untilState(tools: Setting["tools"], accept: (reason: string) => boolean): Promise<void> {
  for (;;) {
    const { tool } = await tools.get({ name: STALLED });
    if (accept(tool?.stateReason ?? "")) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function measure(subjects: readonly Subject[], rounds: number): Promise<Map<string, LoadResult[]>> {
  const results = new Map<string, LoadResult[]>(subjects.map(({ name }) => [name, []]));
  for (const [i, { name, run }] of interleaved(subjects, rounds).entries()) {
    results.get(name)?.push(await run(Math.floor(i / subjects.length)));
  }
  return results;
}

/** The median over the rounds of what one subject has for each unit of another in the same round. */
function ratio(
  results: ReadonlyMap<string, readonly LoadResult[]>,
  [own, other]: readonly [own: string, other: string],
  pick: (result: LoadResult) => number,
): string {
  const base = results.get(other) ?? [];
  const ratios = (results.get(own) ?? []).map((result, round) => {
    const beside = base[round];
    return beside === undefined ? Number.NaN : pick(result) / pick(beside);
  });
  return median(ratios).toFixed(2);
}

function tell(results: ReadonlyMap<string, readonly LoadResult[]>): void {
  for (const [name, list] of results) {
    const of = (pick: (result: LoadResult) => number): string => median(list.map(pick)).toFixed(2);
    console.log(
      `${name}: ${of(perSecond)} calls/s, p50 ${of(p50)} ms, p99 ${of(p99)} ms, ${of(cpuMicros)} µs of CPU a call`,
    );
  }
}

const perSecond = ({ count, seconds }: LoadResult): number => count / seconds;
const p50 = (result: LoadResult): number => result.p50 ?? Number.NaN;
const p99 = (result: LoadResult): number => result.p99 ?? Number.NaN;
const cpuMicros = (result: LoadResult): number => result.cpuMicros ?? Number.NaN;

async function bulkhead(setting: Setting): Promise<void> {
  const alone = "bench_json alone";
  const beside = `bench_json beside ${RUNNING} stalled and ${WAITING} waiting calls`;
  const subjects: readonly Subject[] = [
    { name: alone, run: (round) => loadOn(setting, "bench_json", 4, round) },
    {
      name: beside,
      run: async (round) => {
        await using _stalled = await stall(setting);
        return await loadOn(setting, "bench_json", 4, round);
      },
    },
  ];
  const results = await measure(subjects, setting.rounds);
  console.log("\n## Bulkhead, 4 in flight\n");
  tell(results);
  const pair = [beside, alone] as const;
  const of = (pick: (result: LoadResult) => number): string => ratio(results, pair, pick);
  console.log(`ratio: p99 ${of(p99)}, p50 ${of(p50)}, rate ${of(perSecond)}, CPU a call ${of(cpuMicros)}`);
}

async function adaptive(setting: Setting): Promise<void> {
  const names = ["bench_unlimited", "bench_limited", "bench_adaptive"];
  const results = await measure(
    names.map((name): Subject => ({ name, run: (round) => loadOn(setting, name, CALLERS, round) })),
    setting.rounds,
  );
  console.log(`\n## Adaptive limit, ${CALLERS} callers\n`);
  tell(results);
  for (const name of ["bench_limited", "bench_adaptive"]) {
    const pair = [name, "bench_unlimited"] as const;
    console.log(`${name} against no limit: rate ${ratio(results, pair, perSecond)}, p50 ${ratio(results, pair, p50)}`);
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "3" },
      only: { type: "string", default: "" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  await using stack = new AsyncDisposableStack();
  const upstream = stack.use(await startServer("upstream", LOAD_CORE));
  const gateway = stack.use(await startServer("gateway", SERVER_CORE, [String(upstream.ports["h1"])]));
  const load = stack.use(startLoad(LOAD_CORE));
  const baseUrl = `http://127.0.0.1:${portOf(gateway)}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  stack.defer(() => sessionManager.abort());
  const tools = createClient(ToolGatewayService, createGrpcTransport({ baseUrl, sessionManager }));
  const setting = { gateway, load, tools, rounds: Number(values.rounds), measureMs: Number(values.seconds) * 1_000 };
  if (values.only !== "adaptive") await bulkhead(setting);
  if (values.only !== "bulkhead") await adaptive(setting);
}

await main();
