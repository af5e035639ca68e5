import { parseArgs } from "node:util";
import { runSchedule } from "./schedule.ts";
import { createWorldParts } from "./world.ts";

const { values } = parseArgs({
  options: {
    schedules: { type: "string", default: "10000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_007) },
    trace: { type: "boolean", default: false },
  },
});

// Whoever has read enough goes, as `head` does.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

const schedules = Number(values.schedules);
const first = Number(values.seed);
const parts = createWorldParts();
const startedMs = performance.now();
let calls = 0;
let attempts = 0;
let failed = 0;
console.log(`${schedules} schedules from seed ${first}`);
for (let seed = first; seed < first + schedules; seed++) {
  const report = await runSchedule(seed, parts);
  calls += report.calls;
  attempts += report.attempts;
  if (values.trace) console.log(report.lines.join("\n"));
  if (report.broken.length === 0) continue;
  failed += 1;
  console.log(
    `seed ${seed} broke a promise; again, with all that happened: npm run simulate -- --seed ${seed} --schedules 1 --trace`,
  );
  for (const line of report.broken.slice(0, 5)) console.log(`  ${line}`);
  process.exitCode = 1;
  if (failed === 10) break;
}
const seconds = (performance.now() - startedMs) / 1_000;
const rate = Math.round(schedules / seconds);
console.log(
  `${failed} failed; ${calls} calls, ${attempts} attempts, ${seconds.toFixed(1)} s, ${rate} schedules a second`,
);
