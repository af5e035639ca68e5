import { readdirSync } from "node:fs";
import { getActiveResourcesInfo } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { childrenOf } from "./child-processes.ts";
import { call, openTool } from "./fixture.ts";

/** Longest wait until the last programs are gone. */
const GONE_WITHIN_MS = 10_000;

/** Launchers, and the programs that are their children. */
function processes(): { readonly launchers: number; readonly programs: number } {
  const launchers = childrenOf(process.pid);
  return { launchers: launchers.length, programs: launchers.flatMap(childrenOf).length };
}

/** What this process holds, as soon as no program runs any more. */
async function held() {
  const untilMs = performance.now() + GONE_WITHIN_MS;
  while (processes().programs > 0 && performance.now() < untilMs) await delay(5);
  return {
    ...processes(),
    files: readdirSync("/proc/self/fd").length,
    resources: getActiveResourcesInfo().toSorted(),
  };
}

/** Calls a script 1,000 times, 20 at a time, with one signal, and tells what the process held before and after it. */
async function callManyTimes() {
  const warnings: string[] = [];
  process.on("warning", ({ message }) => void warnings.push(message));
  await using tool = await openTool({ keys: { command: "true" } });
  await call(tool);
  const { signal } = new AbortController();
  const before = await held();
  for (let round = 0; round < 50; round++) {
    await Promise.all(Array.from({ length: 20 }, () => call(tool, {}, { signal })));
  }
  return { before, after: await held(), warnings };
}

process.stdout.write(JSON.stringify(await callManyTimes()));
