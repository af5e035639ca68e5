import { expect, test } from "vitest";
import { crashRounds } from "../e2e/crash-rounds.ts";

const ROUNDS = 200;

test("kill -9 under load, two hundred times: no call runs twice, is forgotten or is hidden", {
  timeout: 7_200_000,
}, async () => {
  const seed = Date.now() % 1_000_000_007;
  console.log(`seed ${seed}`);
  const report = await crashRounds(ROUNDS, seed);
  console.log(JSON.stringify(report));
  expect(report.unknown).toBeGreaterThan(0);
});
