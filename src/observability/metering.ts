import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import type { Resource } from "@opentelemetry/resources";
import {
  type IMetricReader,
  MeterProvider,
  type MetricData,
  MetricReader,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { ExchangeFacts } from "../core/call-observer.ts";
import { VERSION } from "../core/version.ts";
import type { Outcome } from "./outcome.ts";

type MetricDescriptor = MetricData["descriptor"];

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const BYTES = [64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

/** A value that is read when metrics are. */
export interface Gauge {
  readonly name: string;
  readonly description: string;
  readonly values: () => Iterable<readonly [value: number, labels: Readonly<Record<string, string>>]>;
  /** It only grows. */
  readonly counts?: boolean;
  /** As UCUM has it, such as `s` or `By`. Default: a number of things. */
  readonly unit?: string;
}

/** How metrics are made and told. */
export interface MeteringOptions {
  readonly resource: Resource;
  /** Most tools that are told apart. */
  readonly maxTools: number;
  /** Whether they can be read for Prometheus. */
  readonly pulled: boolean;
  readonly otlp: { readonly endpoint: string; readonly intervalMs: number } | undefined;
  readonly gauges: readonly Gauge[];
  /** Makes the exporter one that tells how it fares. */
  readonly watched: <E extends { export: unknown }>(exporter: E, what: string) => E;
}

/** A call that is counted. */
export interface MeteredCall {
  readonly tool: string;
  readonly kind: string;
  readonly seconds: number;
  readonly firstOutputSeconds: number | undefined;
  readonly queuedSeconds: number;
  readonly resultBytes: number;
}

/** Counts calls. */
export class Metering {
  readonly #provider: MeterProvider;
  readonly #pull: PullReader | undefined;
  readonly #serializer = new PrometheusSerializer();
  readonly #maxTools: number;
  readonly #tools = new Set<string>();
  readonly #calls: Counter;
  readonly #attempts: Counter;
  readonly #retries: Counter;
  readonly #acts: Counter;
  readonly #running: UpDownCounter;
  readonly #queued: UpDownCounter;
  readonly #duration: Histogram;
  readonly #firstOutput: Histogram;
  readonly #queueTime: Histogram;
  readonly #connectTime: Histogram;
  readonly #requestSize: Histogram;
  readonly #responseSize: Histogram;
  readonly #resultSize: Histogram;

  constructor({ resource, maxTools, pulled, otlp, gauges, watched }: MeteringOptions) {
    this.#maxTools = maxTools;
    this.#pull = pulled ? new PullReader() : undefined;
    const readers: IMetricReader[] = this.#pull === undefined ? [] : [this.#pull];
    if (otlp !== undefined) {
      const exporter = new OTLPMetricExporter({ url: `${otlp.endpoint}/v1/metrics`, timeoutMillis: 1_000 });
      const exportIntervalMillis = otlp.intervalMs;
      const exportTimeoutMillis = Math.min(otlp.intervalMs, 5_000);
      readers.push(
        new PeriodicExportingMetricReader({
          exporter: watched(exporter, "metrics"),
          exportIntervalMillis,
          exportTimeoutMillis,
        }),
      );
    }
    this.#provider = new MeterProvider({ resource, readers });
    const meter = this.#provider.getMeter("toolgate", VERSION);
    const time = (name: string, description: string): Histogram =>
      meter.createHistogram(name, { description, unit: "s", advice: { explicitBucketBoundaries: SECONDS } });
    const size = (name: string, description: string): Histogram =>
      meter.createHistogram(name, { description, unit: "By", advice: { explicitBucketBoundaries: BYTES } });
    this.#calls = meter.createCounter("toolgate.calls", { description: "Calls that ended." });
    this.#attempts = meter.createCounter("toolgate.attempts", { description: "Attempts that ended." });
    this.#retries = meter.createCounter("toolgate.retries", { description: "Attempts after the first of their call." });
    this.#acts = meter.createCounter("toolgate.acts", { description: "Acts of administrators, and refusals." });
    this.#running = meter.createUpDownCounter("toolgate.calls.running", { description: "Calls that run." });
    this.#queued = meter.createUpDownCounter("toolgate.calls.queued", {
      description: "Attempts that wait for their turn.",
    });
    this.#duration = time("toolgate.call.duration", "From a call's beginning to its end.");
    this.#firstOutput = time("toolgate.call.first_output", "From a call's beginning to its first output.");
    this.#queueTime = time("toolgate.call.queue_time", "How long a call waited for its turn, if it did.");
    this.#connectTime = time("toolgate.upstream.connect_time", "Until there was a connection, or a program.");
    this.#requestSize = size("toolgate.upstream.request.size", "Bodies sent to upstreams.");
    this.#responseSize = size("toolgate.upstream.response.size", "Bodies that upstreams answered, as they came.");
    this.#resultSize = size("toolgate.result.size", "Results after shaping.");
    for (const gauge of gauges) observe(meter, gauge);
  }

  began(tool: string): void {
    this.#running.add(1, this.#label(tool));
  }

  ended(call: MeteredCall, { word, reason }: Outcome): void {
    const label = this.#label(call.tool);
    this.#running.add(-1, label);
    this.#calls.add(1, outcomeLabels(label, word, reason));
    this.#duration.record(call.seconds, { ...label, "toolgate.outcome": word });
    if (call.firstOutputSeconds !== undefined) this.#firstOutput.record(call.firstOutputSeconds, label);
    if (call.queuedSeconds > 0) this.#queueTime.record(call.queuedSeconds, label);
    if (word === "ok" || word === "failure") this.#resultSize.record(call.resultBytes, label);
  }

  /** A call that nothing was run for. A name that the caller made up is no label. */
  refused({ word, reason }: Outcome): void {
    this.#calls.add(1, outcomeLabels({ "gen_ai.tool.name": "none" }, word, reason));
  }

  attempted(tool: string, attempt: number, { word, reason }: Outcome): void {
    const label = this.#label(tool);
    this.#attempts.add(1, outcomeLabels(label, word, reason));
    if (attempt > 1) this.#retries.add(1, label);
  }

  queued(by: 1 | -1): void {
    this.#queued.add(by);
  }

  exchanged(tool: string, { connectMs, requestBytes, responseBytes }: ExchangeFacts): void {
    const label = this.#label(tool);
    if (connectMs !== undefined) this.#connectTime.record(connectMs / 1_000, label);
    if (requestBytes !== undefined) this.#requestSize.record(requestBytes, label);
    if (responseBytes !== undefined) this.#responseSize.record(responseBytes, label);
  }

  act(action: string, outcome: string): void {
    this.#acts.add(1, { "toolgate.action": action, "toolgate.outcome": outcome });
  }

  /** All of it in the text format of Prometheus. */
  async text(): Promise<string> {
    const collected = await this.#pull?.collect();
    return collected === undefined ? "" : this.#serializer.serialize(withUnits(collected.resourceMetrics));
  }

  async close(): Promise<void> {
    await this.#provider.shutdown();
  }

  #label(tool: string): Attributes {
    if (!this.#tools.has(tool)) {
      if (this.#tools.size >= this.#maxTools) return { "gen_ai.tool.name": "other" };
      this.#tools.add(tool);
    }
    return { "gen_ai.tool.name": tool };
  }
}

function outcomeLabels(label: Attributes, word: string, reason: string | undefined): Attributes {
  return { ...label, "toolgate.outcome": word, ...(reason === undefined ? {} : { "error.type": reason }) };
}

/** Words of units in names of metrics. Source: OpenTelemetry, Prometheus and OpenMetrics Compatibility. */
const UNIT_WORDS: ReadonlyMap<string, string> = new Map([
  ["s", "seconds"],
  ["By", "bytes"],
]);

/** The metrics under the names that Prometheus has for them, which say their units; OpenTelemetry's do not. */
function withUnits(metrics: ResourceMetrics): ResourceMetrics {
  return {
    ...metrics,
    scopeMetrics: metrics.scopeMetrics.map((scope) => ({
      ...scope,
      metrics: scope.metrics.map((metric) => ({ ...metric, descriptor: withUnit(metric.descriptor) })),
    })),
  };
}

function withUnit(descriptor: MetricDescriptor): MetricDescriptor {
  const word = UNIT_WORDS.get(descriptor.unit);
  return word === undefined ? descriptor : { ...descriptor, name: `${descriptor.name}_${word}` };
}

function observe(meter: Meter, { name, description, values, counts, unit = "" }: Gauge): void {
  const options = { description, unit };
  const instrument =
    counts === true ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options);
  instrument.addCallback((result) => {
    for (const [value, labels] of values()) result.observe(value, labels);
  });
}

/** Reads when it is asked. */
class PullReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {
    // Nothing waits.
  }

  protected override async onShutdown(): Promise<void> {
    // Nothing is held.
  }
}
