import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import type { CheckResult } from "../../src/core/registry.ts";
import { createMemoryRegistrations } from "../../src/stores/memory-registrations.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import {
  ANONYMOUS,
  advanceUntil,
  declaration,
  OPEN_END,
  registration,
  startRegistry,
  startWithClock,
  temporaryFolder,
} from "./support.ts";

function about(checks: readonly CheckResult[], subject: string): readonly CheckResult[] {
  return checks.filter((check) => check.subject === subject);
}

test("an examination covers folder, store, problems, and every tool's upstream, each finding with its mend [T-D07]", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "broken.yaml"), "name: x\nwhat\n");
  await writeFile(join(folder, "readme.md"), "hello");
  for (const name of ["fine", "unkeyed", "far", "slow", "off"]) {
    await writeFile(join(folder, `${name}.yaml`), declaration(name, "", name === "off" ? "enabled: false\n" : ""));
  }
  const { registry, adapter } = await startRegistry({ folder });
  for (const upstream of adapter.opened) {
    switch (upstream.fields.get("name")) {
      case "unkeyed":
        upstream.state = { state: "unavailable", reason: "secret WEATHER_KEY is not set" };
        upstream.report = { ok: false, message: "secret WEATHER_KEY is not set", mend: "Set WEATHER_KEY." };
        break;
      case "far":
        upstream.report = { ok: false, message: "127.0.0.1:9 refuses connections", mend: "Start the upstream." };
        break;
      case "slow":
        upstream.state = { state: "degraded", reason: "the last probe failed" };
        break;
      default:
    }
  }
  const checks = await registry.diagnose(OPEN_END);
  expect(about(checks, `tools folder ${folder}`)).toMatchObject([{ status: "ok" }]);
  expect(about(checks, "registrations on disk")).toMatchObject([{ status: "ok" }]);
  expect(about(checks, "file:broken.yaml")).toEqual([
    {
      subject: "file:broken.yaml",
      status: "failed",
      message: 'line 2, column 1: cannot read "what"; write key: value',
      mend: "Correct the place named; until then the tool is not there.",
    },
  ]);
  expect(about(checks, "file:readme.md")).toMatchObject([{ status: "warning" }]);
  expect(about(checks, "tool fine")).toEqual([{ subject: "tool fine", status: "ok", message: "reached", mend: "" }]);
  expect(about(checks, "tool unkeyed")).toEqual([
    {
      subject: "tool unkeyed",
      status: "failed",
      message: "unavailable: secret WEATHER_KEY is not set",
      mend: "Set WEATHER_KEY.",
    },
  ]);
  expect(about(checks, "tool far")).toMatchObject([{ status: "failed", mend: "Start the upstream." }]);
  expect(about(checks, "tool slow")).toMatchObject([{ status: "warning" }]);
  expect(about(checks, "tool off")).toMatchObject([{ status: "ok" }]);
  for (const check of checks) expect(check.mend === "", check.message).toBe(check.status === "ok");
});

test("a missing folder and a store that cannot be written are findings", async () => {
  const folder = join(await temporaryFolder(), "none");
  const store = {
    ...createMemoryRegistrations(),
    check: () => Promise.reject(new GatewayError("STORE_FAILED", "registrations cannot be written")),
  };
  const { registry } = await startRegistry({ folder, store });
  const checks = await registry.diagnose(OPEN_END);
  expect(about(checks, `tools folder ${folder}`)).toMatchObject([{ status: "failed", message: "does not exist" }]);
  expect(about(checks, "registrations on disk")).toMatchObject([
    { status: "failed", message: "registrations cannot be written" },
  ]);
});

test("upstreams that never answer a probe cannot hold an examination longer than 20 s", async () => {
  const clock = createFakeClock();
  const folder = await temporaryFolder();
  await mkdir(folder, { recursive: true });
  const { registry, adapter } = await startWithClock(clock, folder);
  for (let n = 0; n < 100; n++) await registry.register(registration(declaration(`t${n}`)), ANONYMOUS, OPEN_END);
  for (const upstream of adapter.opened) upstream.report = new Promise(() => undefined);
  const idle = clock.pending;
  const began = clock.monotonicMs();
  const checks = await advanceUntil(clock, 500, registry.diagnose(OPEN_END));
  expect(clock.monotonicMs() - began).toBeLessThanOrEqual(20_000);
  expect(checks.filter((check) => check.message === "no answer within 5 s").length).toBeGreaterThanOrEqual(32);
  expect(checks.filter((check) => check.message === "not probed: time is up").length).toBeGreaterThan(0);
  expect(checks.filter((check) => check.subject.startsWith("tool t"))).toHaveLength(100);
  expect(clock.pending).toBe(idle);
});

test("an examination that is cancelled ends with the signal's reason", async () => {
  const { registry, adapter } = await startRegistry({ folder: await temporaryFolder() });
  await registry.register(registration(declaration("a")), ANONYMOUS, OPEN_END);
  for (const upstream of adapter.opened) upstream.report = new Promise(() => undefined);
  const stop = new AbortController();
  const examining = registry.diagnose(stop.signal);
  const reason = new GatewayError("CALL_CANCELLED", "gone");
  stop.abort(reason);
  await expect(examining).rejects.toBe(reason);
});
