import { expect, test } from "vitest";
import { crashRounds } from "./crash-rounds.ts";

const ROUNDS = 10;

test("kill -9 under load, ten times: nothing takes effect twice, no answer is forgotten, what is unknown is said [S2-72, S2-73]", {
  timeout: 600_000,
}, async () => {
  const report = await crashRounds(ROUNDS, 20_261_130);
  console.log(JSON.stringify(report));
  expect(report.answered).toBeGreaterThan(0);
  expect(report.answered + report.recovered + report.runLater + report.unknown).toBe(report.calls);
});
