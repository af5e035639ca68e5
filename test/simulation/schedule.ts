import { CallerRun } from "./caller.ts";
import type { Leg } from "./leg.ts";
import { checkOutcomes } from "./outcome-rules.ts";
import { makeScenario } from "./scenario.ts";
import type { SimulatedCaller, SimulatedTool } from "./scenario-parts.ts";
import { createWorld, type World, type WorldParts } from "./world.ts";

/** Longer than anything in a schedule goes on. */
const LONGEST_MS = 3_600_000;
/** By then circuits try again, streams are forgotten and limits of rate are full. */
const REST_MS = 35_000;

/** More than all that the record of one call takes. */
const SLOW_RECORD_MS = 1_000;

/** What became of one schedule. */
export interface ScheduleReport {
  readonly seed: number;
  /** Promises that were broken, in words. */
  readonly broken: readonly string[];
  /** Equal for the same seed. */
  readonly digest: string;
  /** Everything that happened, in order. */
  readonly lines: readonly string[];
  readonly calls: number;
  readonly attempts: number;
}

/** Runs the schedule of a seed on a clock of its own, and holds it against what the gateway promises. */
export async function runSchedule(seed: number, parts: WorldParts): Promise<ScheduleReport> {
  const scenario = makeScenario(seed);
  const world = createWorld(scenario, parts);
  const { clock, journal, upstream, traffic, ledger, lies } = world;
  const runs = scenario.callers.map((caller, i) => makeRun(world, caller, `caller${i}`));
  for (const [i, run] of runs.entries()) clock.after(scenario.callers[i]?.atMs ?? 0, () => run.begin());
  const begunMs = Math.max(...scenario.callers.map(({ atMs }) => atMs)) + 10_000;
  await clock.advance(begunMs);
  const legsOf = (): Leg[] => runs.flatMap(({ legs }) => legs);
  await until(world, () => legsOf().every(({ endMs }) => endMs !== undefined) && upstream.running.size === 0);
  for (const attempt of upstream.running) journal.breach("every attempt ends", attempt.id);
  traffic.check();
  checkOutcomes(legsOf(), upstream.attempts, { journal, ledgerFailed: ledger.failed, lies: lies.told });
  if (journal.broken.length === 0) await checkFreedom(world, scenario.tools);
  if (journal.broken.length === 0) await checkKeys(world, scenario.callers);
  if (journal.broken.length === 0) await checkEnd(world);
  const { broken, lines } = journal;
  const calls = legsOf().length;
  return { seed, broken, lines, calls, attempts: upstream.attempts.length, digest: journal.digest() };
}

function makeRun(world: World, caller: SimulatedCaller, name: string): CallerRun {
  const { service, clock, live, dice, journal, toolOf } = world;
  const totalMs = (tool: string): number => toolOf(tool)?.policy.totalMs ?? 0;
  return new CallerRun(caller, name, { service, clock, live, dice, journal, totalMs });
}

/** Lets time pass until something holds. */
async function until({ clock }: World, holds: () => boolean): Promise<void> {
  const untilMs = clock.monotonicMs() + LONGEST_MS;
  await clock.advance(0);
  while (!holds() && clock.nextInMs !== undefined && clock.monotonicMs() < untilMs) await clock.advance(clock.nextInMs);
}

/** That every tool takes calls again, and as many at a time as before: no slot, permit or place in a line was lost. */
async function checkFreedom(world: World, tools: readonly SimulatedTool[]): Promise<void> {
  const { clock, upstream, lies } = world;
  upstream.calm = true;
  lies.end();
  await clock.advance(REST_MS);
  for (const tool of tools) {
    const timers = clock.pending;
    await probe(world, tool, 1);
    await clock.advance(1_000);
    if (clock.pending > timers) world.journal.breach("a call that is over leaves no timer", tool.definition.name);
    await clock.advance(REST_MS);
    await probe(world, tool, roomOf(tool));
    await clock.advance(REST_MS);
  }
}

/** That no call waits for one of its key that is over. */
async function checkKeys(world: World, callers: readonly SimulatedCaller[]): Promise<void> {
  const keyed = new Map<string, SimulatedCaller>();
  for (const { tool, principal, requestId, n } of callers) {
    // The record alone may take longer than the shortest deadline.
    if (requestId === undefined || (world.toolOf(tool)?.policy.totalMs ?? 0) < SLOW_RECORD_MS) continue;
    keyed.set(`${principal} ${tool} ${requestId}`, { ...probeOf(tool), principal, requestId, n });
  }
  const runs = [...keyed].map(([key, caller]) => makeRun(world, caller, `key ${key}`));
  for (const run of runs) run.begin();
  await until(world, () => runs.every(({ legs: [leg] }) => leg?.endMs !== undefined));
  for (const leg of runs.flatMap(({ legs }) => legs)) {
    if (leg.end?.type !== "error" || leg.end.error.reason !== "CALL_DEADLINE_EXCEEDED") continue;
    world.journal.breach("a key is free when its call is over", leg.name);
  }
  await world.clock.advance(REST_MS);
}

function roomOf({ policy }: SimulatedTool): number {
  const { concurrencyLimit, group, rateLimit, adaptiveConcurrency } = policy;
  if (adaptiveConcurrency) return 1;
  const limits = [concurrencyLimit, group?.maxParallelCalls, rateLimit?.burst, group?.rateLimit?.burst];
  return Math.min(4, ...limits.map((limit) => limit ?? Number.POSITIVE_INFINITY));
}

async function probe(world: World, tool: SimulatedTool, count: number): Promise<void> {
  const { journal, upstream } = world;
  const { name } = tool.definition;
  const runs = Array.from({ length: count }, (_, i) => makeRun(world, probeOf(name), `probe${i} of ${name}`));
  const before = upstream.attempts.length;
  for (const run of runs) run.begin();
  const nowMs = world.clock.monotonicMs();
  await until(world, () => runs.every(({ legs: [leg] }) => leg?.endMs !== undefined));
  for (const { legs } of runs) {
    const end = legs[0]?.end;
    if (end?.type === "completed" && end.failure === undefined) continue;
    const words = end?.type === "error" ? end.error.message : JSON.stringify(end);
    journal.breach("slots and permits come back", `${legs[0]?.name}: ${words}`);
  }
  const atOnce = upstream.attempts.slice(before).filter(({ startMs }) => startMs === nowMs).length;
  if (atOnce < count) journal.breach("slots and permits come back", `${atOnce} of ${count} calls of ${name} at once`);
}

function probeOf(tool: string): SimulatedCaller {
  return {
    atMs: 0,
    tool,
    principal: "probe",
    requestId: undefined,
    n: 1,
    streams: false,
    timeoutMs: undefined,
    rpcTimeoutMs: undefined,
    resumeWindowMs: undefined,
    heartbeatMs: undefined,
    pauseMs: 0,
    leaving: undefined,
  };
}

/** That nothing is left: no timer, lease or room for output, while the gateway runs and when it has stopped. */
async function checkEnd(world: World): Promise<void> {
  const { clock, journal, registry, spill, kept, steps, live } = world;
  if (registry.leases > 0) journal.breach("leases are given back", `${registry.leases} are not`);
  if (spill.files() > 0) journal.breach("room for output is freed", `${spill.files()} files`);
  let stopped = false;
  void kept[Symbol.asyncDispose]().then(() => (stopped = true));
  live[Symbol.dispose]();
  for (const step of steps) step[Symbol.dispose]?.();
  await clock.advance(0);
  if (!stopped) journal.breach("a gateway at rest stops at once", "it does not");
  if (clock.pending > 0) journal.breach("no timer is left", `${clock.pending} are`);
}
