import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const setupFiles = ["test/compile-cache.ts"];

/** `expect.poll` gives up after one second unless told otherwise, which a busy machine may need for nothing at all. */
const expect = { poll: { timeout: 30_000 } };

/**
 * `unit` is quick and starts no gateway; `e2e` starts whole gateways; `servers` starts real MCP servers, which it
 * installs from npm, `collectors` needs Prometheus, and `soak` runs for minutes: none of them is part of `npm test`. Time limits are wide because CI
 * machines are slow and shared; no test may need them.
 */
export default defineConfig({
  test: {
    // Half of the time of a file is waiting: for a process, a file system, a clock.
    maxWorkers: availableParallelism() + 2,
    projects: [
      {
        test: {
          name: "unit",
          root: ".",
          include: ["test/**/*.test.ts"],
          exclude: ["test/e2e/**", "test/servers/**", "test/collectors/**", "test/soak/**"],
          // No module has state, so test files can share them: half the time.
          isolate: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          expect,
          setupFiles,
        },
      },
      {
        test: {
          name: "e2e",
          root: ".",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          expect,
          setupFiles,
        },
      },
      {
        test: {
          name: "servers",
          root: ".",
          include: ["test/servers/**/*.test.ts"],
          // Servers are installed first.
          testTimeout: 120_000,
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: "collectors",
          root: ".",
          include: ["test/collectors/**/*.test.ts"],
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "soak",
          root: ".",
          include: ["test/soak/**/*.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
