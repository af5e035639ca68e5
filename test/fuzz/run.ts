import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Dice } from "./dice.ts";
import { smaller } from "./shrink.ts";
import type { FuzzTarget } from "./target.ts";

/** How long to go on, and where to begin. */
export interface FuzzOptions {
  /** Of the first input; the next has the next number. */
  readonly seed: number;
  /** Whether to go on after so many inputs. At least one is tried. */
  readonly goesOn: (inputs: number) => boolean;
  /** Name of the folder under `seeds/` that inputs are kept in. */
  readonly name: string;
}

/** An input that broke a promise. */
export interface Failure {
  readonly seed: number;
  readonly error: Error;
  /** Where its input is kept, made as small as it goes. */
  readonly file: string;
}

/** What a run came to. */
export interface FuzzReport {
  readonly iterations: number;
  /** One for each promise broken, the first that did. */
  readonly failures: readonly Failure[];
  readonly startBytes: number;
  readonly peakBytes: number;
}

/** After so many different failures a run ends: what is broken is broken. */
const MAX_FAILURES = 10;

/** Throws inputs at a target for as long as is asked for. */
export async function fuzz<Input>(target: FuzzTarget<Input>, options: FuzzOptions): Promise<FuzzReport> {
  const failures = new Map<string, Failure>();
  const startBytes = target.residentBytes();
  let peakBytes = startBytes;
  let iterations = 0;
  do {
    const seed = options.seed + iterations++;
    const input = target.make(new Dice(seed));
    const error = await errorOf(target, input);
    if (error !== undefined && !failures.has(signature(error))) {
      const same = async (less: Input): Promise<boolean> => signature(await errorOf(target, less)) === signature(error);
      const least = target.shrinks ? await smaller(input, same) : input;
      failures.set(signature(error), { seed, error, file: keep(options.name, least) });
    }
    if (iterations % 100 === 0) {
      peakBytes = Math.max(peakBytes, target.residentBytes());
      // Timers and sockets of the target, and whoever wants to end this run, have their turn too.
      await new Promise((resolve) => setImmediate(resolve));
    }
  } while (options.goesOn(iterations) && failures.size < MAX_FAILURES);
  await target.settle();
  return { iterations, failures: [...failures.values()], startBytes, peakBytes };
}

/** The kept inputs of a target, by the name of their file. */
export function keptInputs(name: string): readonly (readonly [file: string, input: unknown])[] {
  const folder = folderOf(name);
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder)
    .toSorted()
    .map((file) => [file, JSON.parse(readFileSync(`${folder}/${file}`, "utf8")) as unknown] as const);
}

function folderOf(name: string): string {
  return fileURLToPath(new URL(`seeds/${name}`, import.meta.url));
}

function keep(name: string, input: unknown): string {
  const text = `${JSON.stringify(input, undefined, 1)}\n`;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
  const folder = folderOf(name);
  mkdirSync(folder, { recursive: true });
  const file = `${folder}/${digest}.json`;
  writeFileSync(file, text);
  return file;
}

async function errorOf<Input>(target: FuzzTarget<Input>, input: Input): Promise<Error | undefined> {
  try {
    await target.check(input);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error("threw what is no error", { cause: error });
  }
}

/** Errors that say the same of different inputs are one failure. */
function signature(error: Error | undefined): string {
  if (error === undefined) return "";
  const place = error.name === "Finding" ? "" : (error.stack?.split("\n").find((line) => line.includes("/src/")) ?? "");
  return `${error.name} ${error.message.split(":")[0]?.replaceAll(/\d+/g, "0")} ${place}`;
}

/** Where a short run begins. */
const SHORT_RUN_SEED = 20_261_130;

/**
 * Throws every kept input, and then so many others: the same in every run, since a test that fails on one machine of
 * fifty says nothing of what was changed. New ones are for `npm run fuzz`.
 */
export async function shortRun<Input>(
  target: FuzzTarget<Input>,
  options: { readonly name: string; readonly inputs: number },
): Promise<void> {
  const { name, inputs } = options;
  for (const [file, input] of keptInputs(name)) {
    const error = await errorOf(target, input as Input);
    if (error !== undefined) throw new Error(`kept input ${name}/${file}: ${error.message}`, { cause: error });
  }
  const { failures } = await fuzz(target, { name, seed: SHORT_RUN_SEED, goesOn: (tried) => tried < inputs });
  const [first] = failures;
  if (first === undefined) return;
  throw new Error(`npm run fuzz -- ${name} --seed ${first.seed} (kept in ${first.file}): ${first.error.message}`, {
    cause: first.error,
  });
}
