import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonValue } from "../core/json.ts";
import { isJsonArray } from "../core/json.ts";
import { ROLES_SCHEMA } from "./access-settings.ts";
import { count, duration, type Setting } from "./setting.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;

const flag = (standard: boolean, description: string): Setting & { readonly standard: boolean } => ({
  schema: { type: "boolean", description },
  standard,
});

/** Metrics and traces, by dotted key. */
export const TELEMETRY_SETTINGS = {
  "metrics.prometheus": flag(false, "Whether `/metrics` of the one port answers Prometheus."),
  "metrics.roles": {
    schema: { ...ROLES_SCHEMA, description: "Roles of which who reads `/metrics` needs one." },
    standard: ["operator"],
  },
  "metrics.max_tools": {
    ...count([1, 10_000], "Most tools that metrics tell apart; the calls of all others count as `other`."),
    standard: 200,
  },
  "telemetry.endpoint": {
    schema: {
      type: "string",
      minLength: 1,
      description:
        "Where an OpenTelemetry collector takes OTLP over HTTP, such as `http://127.0.0.1:4318`. Without it nothing is sent. Headers, if it wants any, are taken from `OTEL_EXPORTER_OTLP_HEADERS`.",
    },
  },
  "telemetry.traces": flag(true, "Whether traces are sent there."),
  "telemetry.metrics": flag(true, "Whether metrics are sent there."),
  "telemetry.sample_ratio": {
    schema: {
      type: "number",
      minimum: 0,
      maximum: 1,
      description: "Share of the calls that are traced, of those whose caller does not say whether they are.",
    },
    standard: 1,
  },
  "telemetry.interval": duration("30s", [SECOND, HOUR], "Time between two messages of metrics."),
} as const satisfies Readonly<Record<string, Setting>>;

/** What is told of calls to the systems that watch the gateway. */
export interface TelemetrySettings {
  /** Absent: `/metrics` is not there. */
  readonly prometheus: { readonly roles: readonly string[] } | undefined;
  readonly maxTools: number;
  /** Absent: nothing is sent. */
  readonly otlp:
    | {
        /** Without a slash at its end. */
        readonly endpoint: string;
        readonly traces: boolean;
        readonly metrics: boolean;
        readonly sampleRatio: number;
        readonly intervalMs: number;
      }
    | undefined;
}

/** Reads what `metrics` and `telemetry` say. Their problems go to `issues`. */
export function readTelemetry(values: ReadonlyMap<string, JsonValue>, issues?: ConfigIssue[]): TelemetrySettings {
  const at = (key: keyof typeof TELEMETRY_SETTINGS): JsonValue | undefined => values.get(key);
  const roles = at("metrics.roles");
  const endpoint = at("telemetry.endpoint");
  const url = typeof endpoint === "string" ? URL.parse(endpoint) : null;
  const isWeb = url !== null && ["http:", "https:"].includes(url.protocol) && url.username === "" && url.search === "";
  if (typeof endpoint === "string" && !isWeb) {
    const message = `\`telemetry.endpoint\`: expected an http or https URL without credentials and query, such as http://127.0.0.1:4318; got ${JSON.stringify(endpoint)}`;
    issues?.push({ pointer: "/telemetry/endpoint", message });
  }
  return {
    prometheus:
      at("metrics.prometheus") === true
        ? { roles: isJsonArray(roles) ? roles.filter((role) => typeof role === "string") : [] }
        : undefined,
    maxTools: Number(at("metrics.max_tools")),
    otlp: isWeb
      ? {
          endpoint: url.href.replace(/\/+$/, ""),
          traces: at("telemetry.traces") === true,
          metrics: at("telemetry.metrics") === true,
          sampleRatio: Number(at("telemetry.sample_ratio")),
          intervalMs: Number(at("telemetry.interval")),
        }
      : undefined,
  };
}
