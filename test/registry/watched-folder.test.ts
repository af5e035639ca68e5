import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { WatchedFolder } from "../../src/registry/watched-folder.ts";

test("a folder counts as loaded when its files have been taken in, however often it is polled before", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-watched-"));
  await writeFile(join(folder, "one.yaml"), "name: one\n");
  const begun = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const polled = Promise.withResolvers<void>();
  let timers = 0;
  const clock: Clock = {
    ...systemClock,
    after: (delayMs, task) => {
      timers += 1;
      if (timers === 20) polled.resolve();
      return systemClock.after(delayMs, task);
    },
  };
  const config = { folder, include: ["**/*.yaml"], settleMs: 0, poll: "always", pollIntervalMs: 5 } as const;
  await using watched = new WatchedFolder(config, {
    clock,
    logger: silentLogger,
    apply: async () => {
      timers = 0;
      begun.resolve();
      await taken.promise;
    },
  });
  let isLoaded = false;
  const loaded = watched.load(new AbortController().signal).then(() => {
    isLoaded = true;
  });
  await begun.promise;
  await polled.promise;
  const wasLoaded = isLoaded;
  taken.resolve();
  await loaded;
  expect(wasLoaded).toBe(false);
  await rm(folder, { recursive: true });
});
