import { parseArgs } from "node:util";
import { fuzz, keptInputs } from "./run.ts";
import type { FuzzTarget } from "./target.ts";
import { TARGETS } from "./targets.ts";

const USAGE = `npm run fuzz -- TARGET [--seconds N] [--seed N]
TARGET is one of ${Object.keys(TARGETS).join(", ")}; the seed is that of the first input.`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "60" }, seed: { type: "string" } },
});
const [name = ""] = positionals;
const seconds = Number(values.seconds);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const start = TARGETS[name];
if (start === undefined || !Number.isFinite(seconds) || !Number.isInteger(seed)) {
  console.error(USAGE);
  process.exitCode = 2;
} else await start(run);

async function run<Input>(opened: FuzzTarget<Input>): Promise<void> {
  await using target = opened;
  for (const [file, input] of keptInputs(name)) {
    try {
      await target.check(input as Input);
    } catch (error) {
      fail(`kept input ${file}`, error);
    }
  }
  const endMs = performance.now() + seconds * 1_000;
  console.log(`${name}: from seed ${seed} for ${seconds} s`);
  const { iterations, failures, startBytes, peakBytes } = await fuzz(target, {
    name,
    seed,
    goesOn: () => performance.now() < endMs,
  });
  for (const failure of failures) fail(`seed ${failure.seed}, input kept in ${failure.file}`, failure.error);
  console.log(
    `${name}: ${iterations} inputs (${String(target.outcomes)}), ${failures.length} failures, ` +
      `resident ${mib(startBytes)} at the start, ${mib(peakBytes)} at most`,
  );
}

function fail(what: string, error: unknown): void {
  console.error(`FAILED ${what}:`, error);
  process.exitCode = 1;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
