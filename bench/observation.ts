import { parseArgs } from "node:util";
import { interleaved, type LoadPlan, type LoadResult, median } from "./measure.ts";
import { startLoad, startServer } from "./processes.ts";

const USAGE = `npm run bench:observation -- [options]
  --rounds N     interleaved rounds (default 5)
  --seconds S    measured time of each subject in a round (default 2)
  --before DIR   another checkout, whose gateway is measured beside these, from bench/
What it costs to watch calls: CPU time of the gateway for a call that is only validated and for a call of an HTTP tool,
with nothing watched, with records, with metrics, and with traces of every call and metrics sent to a collector. Where
nothing watches, nothing of it is in the path of a call; a second gateway of that kind says how far two that are the same
are apart in this run. The ratios travel, the times do not.`;

const SERVER_CORE = 0;
const LOAD_CORE = 1;

/** What each gateway is started with; the first is what the others are compared with. */
function settingsOf(upstreamPort: number): Readonly<Record<string, object>> {
  const records = { gateway: false, audit: false };
  // The upstream takes what is sent to it and answers 404.
  const endpoint = `http://127.0.0.1:${upstreamPort}`;
  return {
    "nothing watched": { records },
    "nothing watched, once more": { records },
    "records (the default)": {},
    "records and the session log": { records: { session: true } },
    "metrics alone": { records, metrics: { prometheus: true } },
    "traces and metrics alone": { records, metrics: { prometheus: true }, telemetry: { endpoint, interval: "1s" } },
  };
}

interface Subject {
  readonly name: string;
  readonly plan: Omit<LoadPlan, "warmUpMs" | "measureMs">;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "2" },
      before: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  await using stack = new AsyncDisposableStack();
  const upstream = stack.use(await startServer("upstream", LOAD_CORE));
  const upstreamPort = upstream.ports["h1"] ?? 0;
  const load = stack.use(startLoad(LOAD_CORE));
  const subjects: Subject[] = [];
  const add = async (name: string, server: string, settings: object): Promise<void> => {
    const args = [String(upstreamPort), JSON.stringify(settings)];
    const { pid, ports } = stack.use(await startServer(server, SERVER_CORE, args));
    const plan = { kind: "unary", client: "grpc", port: ports["h2"] ?? 0, pid, target: "bench_json" } as const;
    subjects.push({ name: `${name}: validated`, plan: { ...plan, validateOnly: true, inFlight: 4 } });
    subjects.push({ name: `${name}: called`, plan: { ...plan, validateOnly: false, inFlight: 4 } });
  };
  for (const [name, settings] of Object.entries(settingsOf(upstreamPort))) await add(name, "gateway", settings);
  if (values.before !== undefined) await add("before", `../${values.before}/bench/servers/gateway`, {});
  const measureMs = Number(values.seconds) * 1_000;
  const results = new Map<string, LoadResult[]>(subjects.map(({ name }) => [name, []]));
  for (const [i, { name, plan }] of interleaved(subjects, Number(values.rounds)).entries()) {
    const warmUpMs = i < subjects.length ? measureMs : measureMs / 4;
    results.get(name)?.push(await load.run({ ...plan, warmUpMs, measureMs }));
  }
  tell(results);
}

function tell(results: ReadonlyMap<string, readonly LoadResult[]>): void {
  for (const [name, list] of results) {
    const base = results.get(`nothing watched:${name.slice(name.lastIndexOf(":") + 1)}`) ?? [];
    const micros = list.map(({ cpuMicros }) => cpuMicros ?? Number.NaN);
    const ratios = micros.map((value, round) => value / (base[round]?.cpuMicros ?? Number.NaN));
    console.log(`${name}: ${median(micros).toFixed(1)} µs of CPU, ${median(ratios).toFixed(2)} of nothing watched`);
  }
}

await main();
