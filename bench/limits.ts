import { parseArgs } from "node:util";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ToolGatewayService } from "../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { interleaved, type LoadPlan, type LoadResult, median } from "./measure.ts";
import { type LoadProcess, type ServerProcess, startLoad, startServer } from "./processes.ts";
import { type Goal, goalsTable } from "./report.ts";

const USAGE = `npm run bench:limits -- [options]
  --rounds N    interleaved rounds (default 5)
  --seconds S   measured time of each subject in a round (default 8 for the bulkhead, 2 for the adaptive limit)
  --only NAME   bulkhead or adaptive
Bulkhead: another tool while an upstream stands still at its limit of 10 and 200 callers wait for it, against the same
tool while nothing else happens. Adaptive: 100 callers of an upstream that gets slower the more it does at a time.
Nothing of it passes or fails: what travels are the ratios, in the table at the end. About 160 seconds.`;

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

async function bulkhead(setting: Setting): Promise<readonly Goal[]> {
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
  const what = `another tool beside ${RUNNING} stalled and ${WAITING} waiting calls, against alone`;
  return [
    { what: `${what}: p99`, measured: of(p99), goal: "below 1.10" },
    { what: `${what}: p50, rate, CPU a call`, measured: [p50, perSecond, cpuMicros].map(of).join(", "), goal: "" },
  ];
}

async function adaptive(setting: Setting): Promise<readonly Goal[]> {
  const names = ["bench_unlimited", "bench_limited", "bench_adaptive"];
  const results = await measure(
    names.map((name): Subject => ({ name, run: (round) => loadOn(setting, name, CALLERS, round) })),
    setting.rounds,
  );
  console.log(`\n## Adaptive limit, ${CALLERS} callers\n`);
  tell(results);
  return [
    ["bench_limited", "the best fixed limit"],
    ["bench_adaptive", "the adaptive limit"],
  ].map(([name = "", words]): Goal => {
    const pair = [name, "bench_unlimited"] as const;
    const measured = [perSecond, p50, p99].map((pick) => ratio(results, pair, pick)).join(", ");
    return { what: `${words} against none, of an upstream that gets slower: rate, p50, p99`, measured, goal: "" };
  });
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string" },
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
  const settingOf = (seconds: number): Setting => {
    const measureMs = Number(values.seconds ?? seconds) * 1_000;
    return { gateway, load, tools, rounds: Number(values.rounds), measureMs };
  };
  const goals: Goal[] = [];
  // A p99 needs many calls before it says something.
  if (values.only !== "adaptive") goals.push(...(await bulkhead(settingOf(8))));
  if (values.only !== "bulkhead") goals.push(...(await adaptive(settingOf(2))));
  console.log(`\n${goalsTable(goals)}`);
}

await main();
