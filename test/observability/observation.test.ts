import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseGatewayConfig } from "../../src/config/gateway-config.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { type Observation, openObservation } from "../../src/observability/observation.ts";

/** What watches a gateway with these settings. */
async function observing(settings: string): Promise<Observation> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-observation-"));
  const parsed = parseGatewayConfig(settings, { file: "gateway.yaml", folder });
  if (!parsed.ok) return expect.unreachable();
  const { gateway, session, audit, folder: _folder, ...limits } = parsed.config.records;
  const seen = await openObservation({
    records: { folder, keeps: { gateway, session, audit }, limits },
    telemetry: parsed.config.telemetry,
    facts: {},
    clock: systemClock,
    redactor: { text: (value) => value, stream: () => ({ push: (piece) => piece, end: () => "" }) },
    logger: silentLogger,
    sources: { listing: () => ({ revision: 1, tools: [], problems: [] }), steps: () => [], programs: () => 0 },
  });
  onTestFinished(async () => {
    await seen[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });
  return seen;
}

test("what is off has no part in the path of a call: there is nothing that watches calls or attempts [S2-69]", async () => {
  const off = await observing("records: {gateway: false}");
  expect([off.watch, off.attempts, off.metrics]).toEqual([undefined, undefined, undefined]);
  const records = await observing("");
  expect(records.watch).toBeDefined();
  expect([records.attempts, records.metrics]).toEqual([undefined, undefined]);
  const metrics = await observing("records: {gateway: false}\nmetrics: {prometheus: true}");
  for (const part of [metrics.watch, metrics.attempts, metrics.metrics]) expect(part).toBeDefined();
});
