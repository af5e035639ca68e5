import { writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { interleaved, type LoadPlan, type LoadResult } from "./measure.ts";
import { type LoadProcess, type ServerProcess, startLoad, startServer } from "./processes.ts";
import { suiteTable, summarize } from "./report.ts";
import { type ServerName, SUITES, type Subject, type Suite } from "./subjects.ts";

const USAGE = `npm run bench -- [options]
  --rounds N    interleaved rounds (default 5)
  --seconds S   measured time of each subject in a round (default 3)
  --only WORDS  suites or subjects whose name holds one of these, comma-separated; baselines always run along
  --quick       1 round of 0.3 s: shows that everything runs, its figures mean nothing
  --json FILE   write all results
Suites: ${SUITES.map(({ name }) => name).join(", ")}`;

/** Servers share one core and the load generator has the other, so that neither takes the other's time. */
const SERVER_CORE = 0;
const LOAD_CORE = 1;

interface Options {
  readonly rounds: number;
  readonly measureMs: number;
  readonly only: readonly string[];
  readonly json: string | undefined;
}

type Servers = ReadonlyMap<ServerName, ServerProcess>;

async function main(): Promise<void> {
  const options = readOptions();
  const suites = selectSuites(options.only);
  console.log(machine());
  await using stack = new AsyncDisposableStack();
  const servers = await startServers(stack);
  const load = stack.use(startLoad(LOAD_CORE));
  const all: Record<string, Record<string, readonly LoadResult[]>> = {};
  for (const suite of suites) {
    const results = await runSuite(suite, options, servers, load);
    const figures = new Map([...results].map(([name, list]) => [name, summarize(list)]));
    console.log(`\n## ${suite.name} (${suite.inFlight} in flight)\n\n${suiteTable(suite, figures)}`);
    all[suite.name] = Object.fromEntries(results);
  }
  if (options.json !== undefined) await writeFile(options.json, JSON.stringify(all, undefined, 1));
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "3" },
      only: { type: "string", default: "" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  return {
    rounds: values.quick ? 1 : Number(values.rounds),
    measureMs: values.quick ? 300 : Number(values.seconds) * 1000,
    only: values.only.split(",").filter((word) => word !== ""),
    json: values.json,
  };
}

/** Keeps what a word names, and the baselines that it is compared with. */
function selectSuites(only: readonly string[]): Suite[] {
  if (only.length === 0) return [...SUITES];
  const named = (name: string): boolean => only.some((word) => name.includes(word));
  return SUITES.flatMap((suite) => {
    if (named(suite.name)) return [suite];
    const chosen = suite.subjects.filter((subject) => named(subject.name));
    const baselines = new Set(chosen.flatMap((subject) => subject.baselines));
    const subjects = suite.subjects.filter((subject) => chosen.includes(subject) || baselines.has(subject.name));
    return subjects.length === 0 ? [] : [{ ...suite, subjects }];
  });
}

function machine(): string {
  const list = cpus();
  return `Node ${process.version}, ${list.length} x ${list[0]?.model.trim() ?? "?"}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, kernel ${release()}`;
}

async function startServers(stack: AsyncDisposableStack): Promise<Servers> {
  const upstream = stack.use(await startServer("upstream", LOAD_CORE));
  const servers = new Map<ServerName, ServerProcess>([["upstream", upstream]]);
  for (const name of ["connect-echo", "grpc-js-echo"] as const) {
    servers.set(name, stack.use(await startServer(name, SERVER_CORE)));
  }
  servers.set("gateway", stack.use(await startServer("gateway", SERVER_CORE, [String(upstream.ports["h1"])])));
  return servers;
}

async function runSuite(
  suite: Suite,
  options: Options,
  servers: Servers,
  load: LoadProcess,
): Promise<Map<string, LoadResult[]>> {
  const results = new Map<string, LoadResult[]>(suite.subjects.map(({ name }) => [name, []]));
  for (const [i, subject] of interleaved(suite.subjects, options.rounds).entries()) {
    const firstRound = i < suite.subjects.length;
    // The first time also warms up the compiler of the runtime.
    const warmUpMs = firstRound ? options.measureMs : options.measureMs / 4;
    const result = await load.run(planFor(suite, subject, servers, { warmUpMs, measureMs: options.measureMs }));
    results.get(subject.name)?.push(result);
  }
  return results;
}

function planFor(
  suite: Suite,
  subject: Subject,
  servers: Servers,
  time: Pick<LoadPlan, "warmUpMs" | "measureMs">,
): LoadPlan {
  const server = servers.get(subject.server);
  const port = server?.ports[subject.port];
  if (server === undefined || port === undefined) throw new Error(`no server for ${subject.name}`);
  return {
    kind: suite.kind,
    client: subject.client,
    port,
    pid: subject.client === "direct" ? undefined : server.pid,
    target: subject.target,
    validateOnly: subject.validateOnly,
    inFlight: suite.inFlight,
    ...time,
  };
}

await main();
