import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { AttemptWatch, AuditEntry, AuditTrail, CallWatch } from "../core/observation.ts";
import type { Principal } from "../core/principal.ts";
import type { CheckResult, ToolListing } from "../core/registry.ts";
import type { Redactor } from "../core/secrets.ts";
import type { Step } from "../core/step.ts";
import { VERSION } from "../core/version.ts";
import type { Gauge } from "./metering.ts";
import { Records, type RecordsOptions } from "./records.ts";
import type { Telemetry, TelemetryOptions } from "./telemetry.ts";

/** What observing a gateway takes. Sources are asked when metrics are read, and not before the gateway is whole. */
export interface ObservationOptions {
  readonly records: Pick<RecordsOptions, "folder" | "keeps" | "limits">;
  readonly telemetry: Omit<TelemetryOptions["settings"], "prometheus"> & {
    readonly prometheus: { readonly roles: readonly string[] } | undefined;
  };
  /** What the audit log has of the gateway's start and stop. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly clock: Clock;
  readonly redactor: Redactor;
  readonly logger: Logger;
  readonly sources: {
    /** All tools, and what is wrong with declarations. */
    readonly listing: () => ToolListing;
    readonly steps: () => readonly Step[];
    /** Programs of this machine that run for tools. */
    readonly programs: () => number;
  };
}

/** Everything that watches a gateway: records, metrics and traces. */
export interface Observation extends AsyncDisposable {
  /** Undefined: nobody watches calls. */
  readonly watch: CallWatch | undefined;
  /** Undefined: nobody watches attempts. */
  readonly attempts: AttemptWatch | undefined;
  readonly audit: AuditTrail;
  /** Undefined: `/metrics` is not there. */
  readonly metrics: { readonly roles: readonly string[]; text(): Promise<string> } | undefined;
  /** What is not well with records. */
  selfChecks(): readonly CheckResult[];
  /** A call of a name that is not there for its caller. */
  denied(call: { readonly name: string; readonly principal: Principal; readonly hidden: boolean }): void;
  /** The gateway has started, or begins to stop. */
  life(action: "gateway-start" | "gateway-stop"): void;
}

/** Opens it. The packages of OpenTelemetry are loaded only where the configuration asks for metrics or traces. */
export async function openObservation(options: ObservationOptions): Promise<Observation> {
  const { clock, redactor, logger, facts } = options;
  const records = new Records({ ...options.records, clock, redactor, logger });
  const telemetry = await openTelemetry(options, records);
  const audit: AuditTrail = {
    note(entry: AuditEntry) {
      records.note(entry);
      telemetry?.note(entry);
    },
  };
  const { prometheus } = options.telemetry;
  return {
    watch: bothWatch(telemetry, records.watchesCalls ? records : undefined),
    attempts: telemetry,
    audit,
    metrics:
      prometheus === undefined || telemetry === undefined
        ? undefined
        : { roles: prometheus.roles, text: () => telemetry.text() },
    selfChecks: () => records.checks(),
    denied: ({ name: tool, principal: { id: actor }, hidden }) =>
      audit.note({ action: "tool-call", outcome: "refused", actor, facts: { tool, hidden } }),
    life(action) {
      audit.note({ action, outcome: "done", actor: "gateway", facts: { version: VERSION, ...facts } });
    },
    async [Symbol.asyncDispose]() {
      await records[Symbol.asyncDispose]();
      await telemetry?.[Symbol.asyncDispose]();
    },
  };
}

async function openTelemetry(
  { telemetry: settings, clock, logger, sources }: ObservationOptions,
  records: Records,
): Promise<Telemetry | undefined> {
  const { prometheus, otlp } = settings;
  if (prometheus === undefined && otlp?.traces !== true && otlp?.metrics !== true) return undefined;
  const { Telemetry } = await import("./telemetry.ts");
  return new Telemetry({ settings, clock, logger, gauges: gaugesOf(sources, records) });
}

/** The one that is there, or the second inside the first. */
function bothWatch(outer: CallWatch | undefined, inner: CallWatch | undefined): CallWatch | undefined {
  if (outer === undefined || inner === undefined) return outer ?? inner;
  return {
    run: (tool, path, call, context) =>
      outer.run(tool, (innerCall, below) => inner.run(tool, path, innerCall, below), call, context),
    short(call) {
      outer.short(call);
      inner.short(call);
    },
  };
}

function gaugesOf({ listing, steps, programs }: ObservationOptions["sources"], records: Records): readonly Gauge[] {
  const ofSteps = (name: string): number => steps().reduce((sum, step) => sum + (step.gauges?.()[name] ?? 0), 0);
  return [
    lines("toolgate.tools", "Tools by state.", {
      values() {
        const counts = new Map(["ready", "degraded", "unavailable", "disabled"].map((state) => [state, 0]));
        for (const { availability } of listing().tools) {
          counts.set(availability.state, (counts.get(availability.state) ?? 0) + 1);
        }
        return [...counts].map(([state, count]) => [count, { "toolgate.state": state }] as const);
      },
    }),
    one("toolgate.declarations.refused", "Problems of declarations.", () => listing().problems.length),
    one("toolgate.revision", "Revision of the tools: another one after each change.", () => listing().revision),
    one("toolgate.circuits.open", "Circuits that let nobody pass.", () => ofSteps("toolgate.circuits.open")),
    one("toolgate.circuits.half_open", "Circuits that try.", () => ofSteps("toolgate.circuits.half_open")),
    one("toolgate.programs", "Programs of this machine that run for tools.", programs),
    lines("toolgate.records.lost", "Lines of records that were lost.", {
      counts: true,
      values: () => records.states.map(({ log, lost }) => [lost, { "toolgate.log": log }]),
    }),
    lines("toolgate.records.failing", "1 while a log of records cannot be written.", {
      values: () => records.states.map(({ log, failing }) => [failing ? 1 : 0, { "toolgate.log": log }]),
    }),
    lines("process.memory.usage", "Resident memory.", {
      unit: "By",
      values: () => [[process.memoryUsage.rss(), {}]],
    }),
    lines("process.cpu.time", "CPU time.", {
      unit: "s",
      counts: true,
      values() {
        const { user, system } = process.cpuUsage();
        return [
          [user / 1e6, { "cpu.mode": "user" }],
          [system / 1e6, { "cpu.mode": "system" }],
        ];
      },
    }),
  ];
}

function lines(name: string, description: string, more: Pick<Gauge, "values" | "counts" | "unit">): Gauge {
  return { name, description, ...more };
}

function one(name: string, description: string, value: () => number): Gauge {
  return { name, description, values: () => [[value(), {}]] };
}
