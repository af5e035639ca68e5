import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mapConcurrently } from "../../src/registry/concurrent.ts";
import {
  ANONYMOUS,
  callTool,
  declaration,
  descriptionOf,
  makeRegistry,
  OPEN_END,
  registration,
  temporaryFolder,
  until,
} from "./support.ts";

const TOOLS = 10_000;
/** Loading at one go takes a second and more; compiling and collecting garbage on a busy machine some 150 ms. */
const MAX_STALL_MS = 400;

/** Watches how much CPU time the event loop's thread spends in one turn; other work on the machine does not count. */
function watchTurns(): { end(): number } {
  let longestMs = 0;
  let last = process.threadCpuUsage();
  const look = (): void => {
    const now = process.threadCpuUsage();
    longestMs = Math.max(longestMs, (now.user + now.system - last.user - last.system) / 1000);
    last = now;
  };
  const timer = setInterval(look, 1);
  return {
    end: () => {
      look();
      clearInterval(timer);
      return longestMs;
    },
  };
}

test("10,000 files load without blocking the loop, and a change among them is quick", {
  timeout: 180_000,
}, async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "sub"));
  const numbers = Array.from({ length: TOOLS }, (_, n) => n);
  await mapConcurrently(numbers, 32, (n) =>
    writeFile(join(folder, n % 2 === 0 ? "" : "sub", `t${n}.yaml`), declaration(`tool-${n}`)),
  );
  const { registry } = makeRegistry({ folder });
  const turns = watchTurns();
  const started = performance.now();
  await registry.start(OPEN_END);
  const coldMs = performance.now() - started;
  const stallMs = turns.end();
  console.log(
    `${TOOLS} files cold: ${Math.round(coldMs)} ms, longest turn of the loop ${stallMs.toFixed(1)} ms of CPU`,
  );
  expect(stallMs).toBeLessThan(MAX_STALL_MS);
  expect(registry.list(ANONYMOUS).tools).toHaveLength(TOOLS);

  const writtenAt = performance.now();
  await writeFile(join(folder, "t5000.yaml"), declaration("tool-5000", "changed"));
  await until(registry, () => descriptionOf(registry, "tool-5000") === "changed", 30_000);
  expect(await callTool(registry, "tool-5000")).toBe("changed");
  const changeMs = performance.now() - writtenAt;
  const before = process.threadCpuUsage();
  for (let n = 0; n < 50; n++) {
    await registry.register(registration(declaration("one-more", `${n}`)), ANONYMOUS, OPEN_END);
  }
  const { user, system } = process.threadCpuUsage(before);
  const registerMs = (user + system) / 1000 / 50;
  console.log(
    `one change among them: ${Math.round(changeMs)} ms, one registration: ${registerMs.toFixed(2)} ms of CPU`,
  );
  expect(changeMs).toBeLessThan(30_000);
  expect(registerMs).toBeLessThan(10);
});
