import { expect, test } from "vitest";
import { FloodGate } from "../../src/observability/flood-gate.ts";
import { createFakeClock } from "../core/fake-clock.ts";

test("whoever is refused all the time gets a hundred lines, then ten a second, and what was kept back is told", async () => {
  const clock = createFakeClock();
  const gate = new FloodGate(clock);
  const passed = Array.from({ length: 1_000 }, () => gate.pass()).filter((more) => more !== undefined);
  expect(passed).toHaveLength(100);
  await clock.advance(100);
  expect(gate.pass()).toEqual({ suppressed: 900 });
  expect(gate.pass()).toBeUndefined();
});
