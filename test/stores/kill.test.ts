import { spawn } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { createFileRegistrations } from "../../src/stores/file-registrations.ts";
import { createRandom } from "../core/random.ts";

const ROUNDS = 5;
const SEED = 20_261_130;

/** Lets a process put registrations and kills it after some acknowledgements and a moment more. */
async function putUntilKilled(folder: string, round: number, random: () => number): Promise<Map<string, number>> {
  const child = spawn(process.execPath, ["test/stores/put-until-killed.ts", folder, String(round)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const acknowledged = new Map<string, number>();
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const enough = 20 + Math.floor(random() * 100);
  let count = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [name = "", version = ""] = line.split(" ");
    acknowledged.set(name, Number(version));
    if (++count === enough) setTimeout(() => child.kill("SIGKILL"), random() * 10);
  }
  await exited;
  return acknowledged;
}

test("kill -9 in the middle of many puts: all that was acknowledged is there, and nothing is torn", {
  timeout: 180_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-kill-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const random = createRandom(SEED);
  const acknowledged = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, version] of await putUntilKilled(folder, round, random)) acknowledged.set(name, version);
    const damaged: string[] = [];
    const kept = await createFileRegistrations(folder).load((entry) => damaged.push(entry));
    expect(damaged).toEqual([]);
    const versions = new Map(kept.map((registration) => [registration.name, registration.updateTimeMs]));
    for (const [name, version] of acknowledged) expect(versions.get(name), name).toBeGreaterThanOrEqual(version);
    for (const { text, updateTimeMs } of kept) expect(text === `${updateTimeMs} `.repeat(2_000)).toBe(true);
    expect((await readdir(folder)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  }
  expect(acknowledged.size).toBeGreaterThanOrEqual(ROUNDS * 4);
});
