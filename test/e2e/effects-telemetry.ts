import { expect } from "vitest";
import type { TELEMETRY_SETTINGS } from "../../src/config/telemetry-settings.ts";
import type { OpenGateway, OpenGatewayOptions } from "./effects-gateway.ts";
import { retryUntil } from "./gateway-client.ts";
import { type OtlpReceiver, startOtlpReceiver } from "./otlp-receiver.ts";

type Open = (options: Pick<OpenGatewayOptions, "settings" | "files">) => Promise<OpenGateway>;

const tool = (name: string): string =>
  JSON.stringify({
    name,
    description: "用于检查指标 a tool that is counted",
    type: "http",
    endpoint: "http://127.0.0.1:9/",
  });

const FILES = { "tools/one.yaml": tool("one"), "tools/two.yaml": tool("two"), "tools/three.yaml": tool("three") };

/** What `/metrics` says after a call of each tool. */
async function metricsOf(open: Open, metrics: object): Promise<{ readonly status: number; readonly text: string }> {
  const { client, url } = await open({ settings: { metrics }, files: FILES });
  for (const name of ["one", "two", "three"]) await client.call(name).catch(() => undefined);
  const response = await fetch(`${url}/metrics`);
  return { status: response.status, text: await response.text() };
}

/** What a collector got of a gateway, calls of which had no trace yet. */
async function sent(open: Open, telemetry: object, calls = 1): Promise<OtlpReceiver> {
  await using receiver = await startOtlpReceiver();
  const settings = { telemetry: { endpoint: receiver.endpoint, ...telemetry } };
  const gateway = await open({ settings, files: FILES });
  for (let i = 0; i < calls; i++) await gateway.client.call("one").catch(() => undefined);
  await gateway.stop();
  return receiver;
}

/** Every key of `metrics` and `telemetry` with what shows that it has an effect. */
export const TELEMETRY_EFFECTS: Readonly<Record<keyof typeof TELEMETRY_SETTINGS, (open: Open) => Promise<void>>> = {
  async "metrics.prometheus"(open) {
    expect((await metricsOf(open, { prometheus: true })).status).toBe(200);
    expect((await metricsOf(open, { prometheus: false })).status).toBe(404);
  },
  async "metrics.roles"(open) {
    expect((await metricsOf(open, { prometheus: true, roles: ["watcher"] })).status).toBe(403);
    expect((await metricsOf(open, { prometheus: true, roles: ["watcher", "operator"] })).status).toBe(200);
  },
  async "metrics.max_tools"(open) {
    const names = async (max_tools: number): Promise<readonly string[]> => {
      const { text } = await metricsOf(open, { prometheus: true, max_tools });
      const found = text.matchAll(/^toolgate_calls_total\{.*gen_ai_tool_name="(\w+)"/gm);
      return [...found].map(([, name = ""]) => name).toSorted();
    };
    expect(await names(200)).toEqual(["one", "three", "two"]);
    expect(await names(1)).toEqual(["one", "other"]);
  },
  async "telemetry.endpoint"(open) {
    const { spans, metrics } = await sent(open, {});
    expect([spans.length > 0, metrics.length > 0]).toEqual([true, true]);
  },
  async "telemetry.traces"(open) {
    const { spans, metrics } = await sent(open, { traces: false });
    expect([spans.length > 0, metrics.length > 0]).toEqual([false, true]);
  },
  async "telemetry.metrics"(open) {
    const { spans, metrics } = await sent(open, { metrics: false });
    expect([spans.length > 0, metrics.length > 0]).toEqual([true, false]);
  },
  async "telemetry.sample_ratio"(open) {
    expect((await sent(open, { sample_ratio: 0 }, 20)).spans).toEqual([]);
    const some = (await sent(open, { sample_ratio: 0.5 }, 60)).spans.filter(({ kind }) => kind === 2);
    expect(some.length).toBeGreaterThan(5);
    expect(some.length).toBeLessThan(55);
  },
  async "telemetry.interval"(open) {
    const messages = async (interval: string): Promise<number> => {
      await using receiver = await startOtlpReceiver();
      await using gateway = await open({ settings: { telemetry: { endpoint: receiver.endpoint, interval } } });
      if (interval === "1s")
        await retryUntil(
          async () => receiver.times.length,
          (count) => count >= 2,
        );
      else await new Promise((resolve) => setTimeout(resolve, 2_500));
      void gateway;
      return receiver.times.length;
    };
    expect(await messages("1s")).toBeGreaterThanOrEqual(2);
    expect(await messages("1h")).toBe(0);
  },
};
