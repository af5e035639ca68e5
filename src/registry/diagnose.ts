import { readdir } from "node:fs/promises";
import type { ProbeReport } from "../core/adapter.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { CheckResult, DeclarationProblem } from "../core/registry.ts";
import type { SecretSource } from "../core/secrets.ts";
import { linkSignals, raceSignal } from "../core/signal.ts";
import type { RegistrationStore } from "../core/store.ts";
import type { Availability } from "../core/tool.ts";
import { mapConcurrently } from "./concurrent.ts";
import { errorCode, unreadable } from "./file-stat.ts";
import { positioned } from "./registry-errors.ts";
import { noToolsBegin, serverOfSource } from "./server-report.ts";
import type { Snapshot } from "./snapshot.ts";
import type { ToolEntry } from "./tool-entry.ts";

const PROBE_CONCURRENCY = 16;
const PROBE_LIMIT_MS = 5_000;
/** After this long no further upstream is probed, so that all is over within 20 s. */
const PROBING_LIMIT_MS = 12_000;
const LOCAL_LIMIT_MS = 5_000;

const MEND_OF_SERVER =
  "Look at the server. A tool of it can be mended by `tools.overrides` of its declaration, or left out by `tools.exclude`.";

/** What is examined. */
export interface Examined {
  readonly clock: Clock;
  readonly snapshot: Snapshot;
  /** The tools folder. */
  readonly folder: string;
  readonly store: RegistrationStore;
  readonly secrets: SecretSource;
  /** Examines what is no tool's. */
  examineMore(signal: AbortSignal): Promise<readonly CheckResult[]>;
}

/** Examines folder, store, declarations and every tool's upstream, each once, within 20 s. @throws the signal's reason. */
export async function diagnose(examined: Examined, signal: AbortSignal): Promise<readonly CheckResult[]> {
  const { snapshot, clock } = examined;
  const endMs = clock.monotonicMs() + PROBING_LIMIT_MS;
  // The tools of a server share its upstream, which is looked at once.
  const own = snapshot.tools.filter(({ claim }) => claim.declaration.remote === undefined);
  const [folder, store, more, tools] = await Promise.all([
    checkFolder(examined, signal),
    checkStore(examined, signal),
    within(clock, PROBING_LIMIT_MS, signal, (limit) => examined.examineMore(limit)),
    mapConcurrently(own, PROBE_CONCURRENCY, (entry) => checkTool(entry, clock, endMs, signal)),
  ]);
  const remote = snapshot.tools.flatMap((entry) => remoteChecks(entry, snapshot));
  const problems = snapshot.problems.filter((problem) => !isSaidOfServer(problem));
  const secrets = secretChecks(own, examined.secrets);
  return [folder, store, ...more, ...problems.map(problemCheck), ...secrets, ...tools.flat(), ...remote];
}

async function checkFolder({ folder, clock }: Examined, signal: AbortSignal): Promise<CheckResult> {
  const subject = `tools folder ${folder}`;
  try {
    const entries = await within(clock, LOCAL_LIMIT_MS, signal, () => readdir(folder));
    return { subject, status: "ok", message: `readable, ${entries.length} entries`, mend: "" };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof GatewayError) return failed(subject, error.message, "Check the file system.");
    const code = errorCode(error);
    if (code === "ENOENT")
      return failed(subject, "does not exist", "Create it, or set `tools.folder` in gateway.yaml.");
    return failed(subject, unreadable(code), "Make it a folder that the gateway's user can read.");
  }
}

async function checkStore({ store, clock }: Examined, signal: AbortSignal): Promise<CheckResult> {
  const subject = "registrations on disk";
  try {
    await within(clock, LOCAL_LIMIT_MS, signal, () => store.check());
    return { subject, status: "ok", message: "can be written", mend: "" };
  } catch (error) {
    signal.throwIfAborted();
    return failed(subject, GatewayError.from(error).message, "Check space and permissions of the state folder.");
  }
}

/** Why a server has never told of its tools is what looking at the server itself finds. */
function isSaidOfServer({ source, message }: DeclarationProblem): boolean {
  const server = serverOfSource(source);
  return server !== undefined && message.startsWith(noToolsBegin(server));
}

function problemCheck(problem: DeclarationProblem): CheckResult {
  const subject = problem.source;
  const message = positioned(problem.line, problem.column, problem.message);
  const ofServer = serverOfSource(subject) !== undefined;
  const noted = ofServer ? MEND_OF_SERVER : "Follow the note, or leave it as it is.";
  if (problem.note) return { subject, status: "warning", message, mend: noted };
  if (ofServer) return failed(subject, message, MEND_OF_SERVER);
  const mend = problem.lastGoodServing
    ? "Correct the place named; until then the last good version serves."
    : "Correct the place named; until then the tool is not there.";
  return failed(subject, message, mend);
}

async function checkTool(
  entry: ToolEntry,
  clock: Clock,
  endMs: number,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const subject = `${entry.isServer ? "server" : "tool"} ${entry.definition.name}`;
  const { availability } = entry;
  const { state, reason } = availability;
  if (entry.open === undefined) return [{ subject, status: "ok", message: `${state}: ${reason}`, mend: "" }];
  if (availability.starting === true) {
    return [{ subject, status: "warning", message: `${state}: ${reason}`, mend: "Look again in a moment." }];
  }
  const { upstream } = entry.open;
  if (clock.monotonicMs() >= endMs) {
    return [{ subject, status: "warning", message: "not probed: time is up", mend: "Probe it by calling the tool." }];
  }
  const probe = await within(clock, PROBE_LIMIT_MS, signal, (limit) => upstream.probe(limit)).catch(
    (error: unknown): ProbeReport => {
      signal.throwIfAborted();
      // Why a server is not there is known better than by a probe that waited in vain.
      const message = entry.isServer && state === "unavailable" ? reason : GatewayError.from(error).message;
      return { ok: false, message, mend: "Look at the upstream and the gateway's log." };
    },
  );
  const standing = standingCheck(subject, availability, probe);
  // A server has one thing that is wrong with it, which the state tells by the way.
  const told = probe.ok || reason.includes(probe.message);
  const checks = entry.isServer && state === "unavailable" && !told ? [] : standing;
  if (!told) return [...checks, failed(subject, probe.message, probe.mend)];
  return checks.length > 0 ? checks : [{ subject, status: "ok", message: probe.message, mend: "" }];
}

/** What an upstream's state says, where that is not that it is ready. */
function standingCheck(
  subject: string,
  { state, reason, mend: wayOut }: Availability,
  probe: ProbeReport,
): readonly CheckResult[] {
  if (state === "ready") return [];
  const mend = wayOut ?? (probe.mend === "" ? "Correct what the reason names." : probe.mend);
  return [{ subject, status: state === "degraded" ? "warning" : "failed", message: `${state}: ${reason}`, mend }];
}

/** Every secret that is missing, with all who need it. */
function secretChecks(entries: readonly ToolEntry[], secrets: SecretSource): readonly CheckResult[] {
  const users = new Map<string, string[]>();
  for (const { claim, definition } of entries) {
    for (const reference of claim.declaration.secretRefs ?? []) {
      const names = users.get(reference) ?? [];
      users.set(reference, names);
      names.push(definition.name);
    }
  }
  return [...users].flatMap(([reference, names]) => {
    const missing = secrets.missing(reference);
    if (missing === undefined) return [];
    return failed(`secret ${reference}`, `${missing.why}; needed by ${names.toSorted().join(", ")}`, missing.mend);
  });
}

/** What stands in the way of a server's tool alone, such as its circuit; what the whole server has is said of that. */
function remoteChecks(entry: ToolEntry, snapshot: Snapshot): readonly CheckResult[] {
  const { remote } = entry.claim.declaration;
  const { state, reason, mend = "Correct what the reason names." } = entry.availability;
  if (remote === undefined || state === "ready" || state === "disabled") return [];
  const server = snapshot.named(remote.server)?.availability;
  if (server?.state === state && server.reason === reason) return [];
  const status = state === "degraded" ? "warning" : "failed";
  return [{ subject: `tool ${entry.definition.name}`, status, message: `${state}: ${reason}`, mend }];
}

/** Runs a task that is cancelled and left behind after a limit. @throws the task's error, the signal's reason, or GatewayError UPSTREAM_TIMEOUT. */
async function within<T>(
  clock: Clock,
  limitMs: number,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using link = linkSignals(signal);
  using _limit = clock.after(limitMs, () => {
    link.abort(new GatewayError("UPSTREAM_TIMEOUT", `no answer within ${limitMs / 1000} s`));
  });
  link.signal.throwIfAborted();
  return await raceSignal(task(link.signal), link.signal);
}

function failed(subject: string, message: string, mend: string): CheckResult {
  return { subject, status: "failed", message, mend };
}
